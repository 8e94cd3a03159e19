"""Steps of the real PyTorch are what a person counts, whatever stands around the optimizer or beside it."""

from __future__ import annotations

import pytest

from installed_frameworks import needs_torch
from probed import Program

pytestmark = needs_torch
TRAINING = """
import torch
from torch import nn
from torch.optim import SGD, Adam

model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
rows = torch.ones(3, 4)

def grads():
    model.zero_grad()
    loss = model(rows).square().mean()
    loss.backward()
    return loss

class Holder(torch.optim.Optimizer):
    def __init__(self, inner):
        super().__init__(inner.param_groups, {})
        self.inner = inner

    def step(self, closure=None):
        return self.inner.step(closure)

class Own(Adam):
    def step(self, closure=None):
        return super().step(closure)

class Fails(Adam):
    def step(self, closure=None):
        raise ValueError("no room")
"""
LOOP = """
for n in range(10):
    grads()
    for one in optimizers:
        one.step()
"""
COUNTED = {
    "one": ("optimizers = [Adam(model.parameters())]" + LOOP, 10),
    "sharded": (
        """
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
dist.init_process_group("gloo", "tcp://127.0.0.1:0", rank=0, world_size=1)
optimizers = [ZeroRedundancyOptimizer(model.parameters(), optimizer_class=Adam)]
"""
        + LOOP,
        10,
    ),
    "one that holds another": ("optimizers = [Holder(Holder(SGD(model.parameters())))]" + LOOP, 10),
    "one that calls its class's": (
        "optimizers = [Adam(model.parameters()), Own(model.parameters())][1:]" + LOOP,
        10,
    ),
    "two that take turns": (
        "optimizers = [SGD(model[0].parameters()), Adam(model[1].parameters())]" + LOOP,
        10,
    ),
    "one for each parameter": ("optimizers = [SGD([p]) for p in model.parameters()]" + LOOP, 10),
    "another one from here on": (
        "first = optimizers = [SGD(model.parameters())]" + LOOP
        # The first two are not yet known to be more than another's turn.
        + "optimizers = [Adam(model.parameters())]" + LOOP,
        18,
    ),
    "the first is gone": (
        "optimizers = [SGD(model.parameters())]" + LOOP
        + "del one; optimizers = [Adam(model.parameters())]" + LOOP,
        20,
    ),
    "a schedule and a scaler": (
        """
one = Adam(model.parameters())
schedule = torch.optim.lr_scheduler.StepLR(one, 3)
scaler = torch.amp.GradScaler("cpu")
for n in range(10):
    scaler.scale(grads())
    scaler.step(one)
    scaler.update()
    schedule.step()
""",
        10,
    ),
    "closures": (
        "one = torch.optim.LBFGS(model.parameters())\nfor n in range(10): one.step(grads)",
        10,
    ),
    "gradients of several batches": (
        "one = Adam(model.parameters())\nfor n in range(40):\n    grads()\n    if n % 4 == 3: one.step()",
        10,
    ),
    "after one that failed": (
        """
try:
    Holder(Fails(model.parameters())).step()
except ValueError:
    optimizers = [Adam(model.parameters())]
"""
        + LOOP,
        10,
    ),
}  # fmt: skip


COUNT = """
import gc, sys
box = next(m for name, m in sys.modules.items() if name.endswith("probe.member")).here.box
for name, code in programs.items():
    before = box.steps
    exec(training + code, {})
    gc.collect()  # no optimizer outlives its program
    print(name, box.steps - before, sep=": ")
"""


def test_steps_are_those_of_the_loop(program: Program) -> None:
    programs = {name: code for name, (code, _) in COUNTED.items()}
    ended = program.run(f"training, programs = {(TRAINING, programs)!r}\n{COUNT}")
    assert ended.code == 0, ended.err
    told = dict(line.split(": ") for line in ended.out.splitlines())
    assert told == {name: str(steps) for name, (_, steps) in COUNTED.items()}
    assert program.read(ended.pid).step == sum(steps for _, steps in COUNTED.values())


@pytest.mark.parametrize(
    ("then", "steps"),
    [
        # The first two of another one are not yet known to be more than its turn.
        ("optimizers = [Holder(alone)]", 18),
        ("import copy; optimizers = [copy.deepcopy(alone)]", 18),
        ("other = SGD(model.parameters())", 20),
    ],
)
def test_one_that_was_alone(program: Program, then: str, steps: int) -> None:
    code = "alone = SGD(model.parameters()); optimizers = [alone]" + LOOP + then + LOOP
    ended = program.run(TRAINING + code)
    assert ended.code == 0, ended.err
    assert program.read(ended.pid).step == steps
