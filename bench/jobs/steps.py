"""A small data-parallel loop by hand: one all_reduce and one optimizer step a training step.

Writes ``ready`` (once warm) and ``rank-N.json`` to the folder of ``--marks``: the mean step time of
every block and, where allaboard's probe is loaded, what one event of it costs in this very process.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

HOT = 50_000
"""Events in a row when the cost of one is measured without the loop around it."""


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--marks", type=Path, required=True, help="folder for what is measured")
    parser.add_argument("--block", type=int, default=200, help="steps a block")
    parser.add_argument("--blocks", type=int, default=10, help="blocks that are measured")
    parser.add_argument("--width", type=int, default=192, help="of the network: sets the step time")
    parser.add_argument("--costs", action="store_true", help="measure the events' cost at the end")
    return parser.parse_args()


class Loop:
    """The network, its optimizer, and one step."""

    def __init__(self, width):
        torch.manual_seed(0)
        layers = [nn.Linear(width, width), nn.ReLU()] * 4
        self.model = nn.Sequential(*layers, nn.Linear(width, 10))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, foreach=False)
        self.images = torch.randn(256, width)
        self.labels = torch.randint(0, 10, (256,))

    def step(self):
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.model(self.images), self.labels).backward()
        gradients = [p.grad for p in self.model.parameters()]
        flat = torch.cat([g.reshape(-1) for g in gradients])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        parts = flat.split([g.numel() for g in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))
        self.optimizer.step()

    def block(self, steps):
        """The mean time of a step (s)."""
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        return (time.perf_counter() - begin) / steps


class Nothing(torch.optim.Optimizer):
    """An optimizer whose step does nothing, to see what its hooks cost."""

    def __init__(self):
        super().__init__([torch.zeros(1, requires_grad=True)], {})

    def step(self):
        return None


def per_call(call, times):
    begin = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - begin) / times


def nothing():
    return None


def costs(loop, steps):
    """Seconds an event: a step by the optimizer's hook, a collective in and out; each in a tight
    loop, and between real steps, where the caches are not ours."""
    probe = sys.modules.get("_allaboard_probe.member")
    if probe is None or probe.here.box is None:
        return None
    each = observers(probe, loop)
    hot = {name: per_call(one, HOT) - per_call(nothing, HOT) for name, one in each.items()}
    optimizer = Nothing()
    # By this name, because torch.optim does not keep its submodule as an attribute.
    hooks = sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
    with_hooks = per_call(optimizer.step, HOT)
    kept = dict(hooks)
    hooks.clear()
    hot_step = with_hooks - per_call(optimizer.step, HOT)
    hooks.update(kept)
    each = {"step": probe.step, **each, "clock": nothing}
    cold = {name: [] for name in each}
    for _ in range(steps):
        loop.step()
        for name, one in each.items():
            begin = time.perf_counter()
            one()
            cold[name].append(time.perf_counter() - begin)
    timer = middle(cold.pop("clock"))
    return {
        "step_hot": hot_step,
        **{f"{name}_hot": cost for name, cost in hot.items()},
        **{f"{name}_between": middle(values) - timer for name, values in cold.items()},
    }


def observers(probe, loop):
    """One event of each observer: a collective that does nothing, the value that backward begins from, a
    batch (of one in 64 some elements are hashed)."""
    torch_adapter = sys.modules["_allaboard_probe.adapters.torch"]
    record = sys.modules["_allaboard_probe.adapters._torch_record"]
    data = sys.modules["_allaboard_probe.adapters._torch_data"]
    losses = sys.modules["_allaboard_probe.adapters._torch_loss"].Losses()
    box, tensor = probe.here.box, torch.ones(64)
    reduce = record.recorded(torch_adapter._recorders[0], "all_reduce", lambda tensor: None)
    loss = nn.functional.cross_entropy(loop.model(loop.images), loop.labels)
    batch, iterator, frame = [loop.images, loop.labels], type("Iterator", (), {})(), sys._getframe()

    def came():
        began = time.monotonic()
        box.slot()
        box.input += time.monotonic() - began
        data._came(box, iterator, batch, frame)

    return {
        "operation": lambda: reduce(tensor),
        "loss": lambda: losses.saw(box, (loss,)),
        "batch": came,
    }


def middle(values):
    return sorted(values)[len(values) // 2]


def events():
    """Steps and operations that the probe has counted so far; None without a probe."""
    probe = sys.modules.get("_allaboard_probe.member")
    box = probe.here.box if probe is not None else None
    if box is None:
        return None
    slot = box.slot()
    return {"steps": box.steps, "operations": slot.count if slot is not None else 0}


def main():
    options = parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    loop = Loop(options.width)
    loop.block(options.block)
    dist.barrier()
    if rank == 0:
        (options.marks / "ready").touch()
    before = events()
    blocks = [loop.block(options.block) for _ in range(options.blocks)]
    after = events()
    dist.barrier()
    if rank == 0:
        (options.marks / "done").touch()
    measured = {
        "blocks": blocks,
        "block": options.block,
        "before": before,
        "after": after,
        "costs": costs(loop, options.block) if options.costs else None,
        "torch": torch.__version__,
    }
    dist.barrier()
    time.sleep(0.3)
    (options.marks / f"rank-{rank}.json").write_text(json.dumps(measured))
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
