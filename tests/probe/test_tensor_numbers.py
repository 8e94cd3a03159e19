"""Which parameter, gradient or buffer a collective of the real PyTorch is called with, in a group of one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from allaboard.blackbox.collective_calls import CallReader
from installed_frameworks import needs_torch
from probed import Program

pytestmark = needs_torch
GROUP = """
import gc, warnings
warnings.simplefilter("error")
import torch, torch.distributed as dist
dist.init_process_group("gloo", "tcp://127.0.0.1:0", rank=0, world_size=1)
"""
START = """
import torch, torch.distributed as dist
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        self.register_buffer("mean", torch.zeros(4, 4))

    def forward(self, x):
        return self.body(x)

net = Net()
weight, bias = net.body[0].weight, net.body[0].bias

def backward():
    net.zero_grad()
    net(torch.randn(3, 4)).sum().backward()
"""
ONE_AFTER_ANOTHER = """
for calls in programs:
    exec(start + calls, {})
    gc.collect()  # no module outlives its program
    dist.reduce(torch.zeros(3), 0)  # ends what is counted for this one
dist.destroy_process_group()
"""
PROGRAMS = {
    "ways to one tensor": """
backward()
for tensor in (weight, weight.data, weight.grad, weight.grad.data, bias.grad, net.mean, weight.view(-1)):
    with torch.no_grad():
        dist.all_reduce(tensor)
""",
    "gradients that move": """
kept = []
for _ in range(3):
    backward()
    kept.append(torch.randn(4, 4))
    for parameter in net.parameters():
        dist.all_reduce(parameter.grad)
    kept.append(weight.grad)
    weight.grad = None
""",
    "an old gradient": """
backward()
dist.all_reduce(weight.grad)
old = weight.grad
weight.grad = None
dist.all_reduce(old)
""",
    "tensors of no module": """
dist.all_reduce(torch.zeros(4, 4))
dist.all_reduce(torch.zeros(7))
dist.all_reduce(torch.zeros(()))
dist.all_gather([torch.zeros(4, 4)], weight.data)
dist.barrier()
""",
    "a module that is gone": """
import gc, weakref
from _allaboard_probe.adapters._torch.tensor_numbers import numbers
dist.all_reduce(bias.data)
before = len(numbers._by_id)
extra = Net()
assert len(numbers._by_id) > before
gone = weakref.ref(extra), weakref.ref(extra.body[0].weight)
del extra
gc.collect()
assert gone[0]() is None and gone[1]() is None and len(numbers._by_id) == before
dist.all_reduce(bias.data)
""",
    "under DDP": """
model = nn.parallel.DistributedDataParallel(net)
dist.broadcast(weight.data, 0)
""",
    "a size of no module": """
from _allaboard_probe.adapters._torch.tensor_numbers import numbers
for _ in range(40):
    dist.all_reduce(torch.zeros(4, 4))
assert 16 not in numbers.sizes and 4 in numbers.sizes, numbers.sizes
""",
}
"""The last one is that after which a size of theirs is not looked for any more."""


@pytest.fixture(scope="module")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    """What the calls of each program were called with, by the black box; "" for what is no tensor of a
    module. All of them in one process, since PyTorch takes seconds to load."""
    program = Program(tmp_path_factory.mktemp("numbered"))
    given = f"start, programs = {(START, list(PROGRAMS.values()))!r}\n"
    ended = program.run(given + GROUP + ONE_AFTER_ANOTHER)
    assert ended.code == 0, ended.err
    box = program.box(ended.pid)
    reader = CallReader(box.map)
    (group,) = box.read_snapshot().groups
    trace = reader.trace_group(*group.key)
    assert trace is not None
    tensors = trace.tensors or (0,) * len(trace.calls)
    parts: list[list[str]] = [[]]
    for (_, call), number in zip(trace.calls, tensors, strict=True):
        if call is not None and call.op == "reduce":
            parts.append([])
        else:
            parts[-1].append(trace.tensor_names.get(number, f"?{number}" if number else ""))
    *parts, rest = parts
    assert rest == []
    yield dict(zip(PROGRAMS, parts, strict=True))
    program.close()


def test_a_tensor_is_known_by_itself_its_data_and_its_gradient(
    numbered: dict[str, list[str]],
) -> None:
    name = "Net.body.0.weight"
    bias = "Net.body.0.bias"
    assert numbered["ways to one tensor"] == [name, name, name, name, bias, "Net.mean", name]


def test_gradients_that_move_are_found_again(numbered: dict[str, list[str]]) -> None:
    order = ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert numbered["gradients that move"] == [f"Net.body.{name}" for name in order] * 3


def test_another_tensor_at_the_address_of_a_gradient_is_none(
    numbered: dict[str, list[str]],
) -> None:
    assert numbered["an old gradient"] == ["Net.body.0.weight", ""]


def test_tensors_of_no_module_are_not_followed(numbered: dict[str, list[str]]) -> None:
    assert numbered["tensors of no module"] == [""] * 5


def test_the_path_is_the_same_under_ddp(numbered: dict[str, list[str]]) -> None:
    assert numbered["under DDP"][-1] == "Net.body.0.weight"


def test_a_size_that_is_never_a_tensor_of_a_module_is_given_up(
    numbered: dict[str, list[str]],
) -> None:
    assert set(numbered["a size of no module"]) == {""}


def test_what_a_program_lets_go_of_is_gone(numbered: dict[str, list[str]]) -> None:
    assert numbered["a module that is gone"] == ["Net.body.0.bias"] * 2
