"""A small data-parallel loop by hand: one all_reduce and one optimizer step a training step.

Writes ``ready`` (once warm) and ``rank-N.json`` to the folder of ``--marks``: the mean step time of
every block and, where allaboard's probe is loaded, what one event of it costs in this very process.
"""

import argparse
import json
import os
import random
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
    parser.add_argument(
        "--rounds", type=int, default=0, help="of blocks watched and bare, at the end"
    )
    parser.add_argument("--short", type=int, default=10, help="steps of each of these")
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
        self.reduce = dist.all_reduce
        self.batches = None
        """An iterator that has the same batch ready each time; None: no loader."""

    def step(self):
        if self.batches is not None:
            next(self.batches)
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.model(self.images), self.labels).backward()
        gradients = [p.grad for p in self.model.parameters()]
        flat = torch.cat([g.reshape(-1) for g in gradients])
        self.reduce(flat)
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


def per_call(call, bare=None):
    """Seconds a call in a row, less those of the ``bare`` one."""
    begin = time.perf_counter()
    for _ in range(HOT):
        call()
    taken = (time.perf_counter() - begin) / HOT
    return taken if bare is None else taken - per_call(bare)


def three(optimizer, args, kwargs):
    return None


def costs(loop, steps):
    """Seconds that watching adds to an event; each in a tight loop, and between real steps, where the
    caches are not ours. There one call is made after each step, watched or bare, each kind in its turn:
    two in a row would warm each other."""
    probe = sys.modules.get("_allaboard_probe.member")
    if probe is None or probe.here.box is None:
        return None
    each = observers(probe, loop)
    # The loop's own optimizer: another one beside it would be another program.
    optimizer = loop.optimizer
    # By this name, because torch.optim does not keep its submodule as an attribute.
    hook = list(sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks.values())[-1]
    each["step"] = (lambda: hook(optimizer, (), {})), (lambda: three(optimizer, (), {}))
    found = {f"{name}_hot": per_call(*pair) for name, pair in each.items()}
    between = {(name, way): [] for name in each for way in (0, 1)}
    for turn in range(steps):
        for (name, way), taken in between.items():
            loop.step()
            one = each[name][way]
            begin = time.perf_counter()
            one()
            taken.append(time.perf_counter() - begin)
        if turn == 0:  # the first of each is another's, to warm up
            for taken in between.values():
                taken.clear()
    for name in each:
        watched, bare = between[name, 0], between[name, 1]
        found[f"{name}_between"] = middle(watched) - middle(bare)
    return found


def alternating(loop, rounds, block):
    """The same loop in this process in turns, a block of steps watched, one bare, and one bare as a control,
    in an order that is drawn alike on all ranks: the middle step of each (s), round by round."""
    ways = [watched_or_not(loop, watched) for watched in (True, False, False)]
    draw = random.Random(1)
    found = []
    for _ in range(rounds):
        middles = [0.0] * len(ways)
        for way in draw.sample(range(len(ways)), len(ways)):
            ways[way]()
            taken = []
            for _ in range(block):
                begin = time.perf_counter()
                loop.step()
                taken.append(time.perf_counter() - begin)
            middles[way] = middle(taken)
        found.append(middles)
    ways[0]()
    return found


def watched_or_not(loop, watched):
    """What makes the next steps watched, by all that this loop's watching consists of, or bare. No more among
    it is the hook of `Work.wait`."""
    adapter = sys.modules["_allaboard_probe.adapters.torch"]
    assert adapter._recorders[0].waits.off, "Work.wait is hooked"
    hooks = sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
    engine = torch.autograd
    data = sys.modules["_allaboard_probe.adapters._torch.data_loader"]
    reduce, run, kept = dist.all_reduce, engine._engine_run_backward, dict(hooks)
    loaders = loaded([loop.images, loop.labels])
    if watched:
        data.loader(type("dataloader", (), {"_BaseDataLoaderIter": loaders}))
    else:
        reduce, run, kept = ours(reduce).__wrapped__, ours(run).__wrapped__, {}
    batches = loaders()

    def switch():
        loop.reduce, loop.batches = reduce, batches
        engine._engine_run_backward = run
        hooks.clear()
        hooks.update(kept)

    return switch


def ours(call):
    """The same, if it is of the probe's; PyTorch wraps some of its own."""
    assert "probe" in call.__code__.co_filename, call.__code__.co_filename
    return call


def observers(probe, loop):
    """One event of each observer, watched and bare: a collective that does nothing (its own wait is hooked no
    more by then); a backward that does nothing from a real loss; a batch of a loader that has it ready (one
    in 64 is hashed in part)."""
    torch_adapter = sys.modules["_allaboard_probe.adapters.torch"]
    assert torch_adapter._recorders[0].waits.off, "Work.wait is hooked"
    record = sys.modules["_allaboard_probe.adapters._torch.collectives"]
    data = sys.modules["_allaboard_probe.adapters._torch.data_loader"]
    tensor = torch.ones(64)

    def silent(tensor):
        return None

    reduce = record.recorded(torch_adapter._recorders[0], "all_reduce", silent)
    loss = nn.functional.cross_entropy(loop.model(loop.images), loop.labels)
    gradients = sys.modules["_allaboard_probe.adapters._torch.ddp_backward"]
    backward = gradients.backward(record.Recorder(None), silent)
    roots, batch = (loss,), [loop.images, loop.labels]
    bare, watched = loaded(batch), loaded(batch)
    data.loader(type("dataloader", (), {"_BaseDataLoaderIter": watched}))
    plain, loader = bare(), watched()
    return {
        "operation": ((lambda: reduce(tensor)), (lambda: silent(tensor))),
        "loss": ((lambda: backward(roots)), (lambda: silent(roots))),
        "batch": ((lambda: next(loader)), (lambda: next(plain))),
    }


def loaded(batch):
    """A class in the place of the iterator of a DataLoader."""

    class Loaded:
        def _reset(self):
            return None

        def __next__(self):
            return batch

    return Loaded


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
        "costs": costs(loop, options.block // 2) if options.costs else None,
        "rounds": alternating(loop, options.rounds, options.short) if options.rounds else [],
        "torch": torch.__version__,
    }
    dist.barrier()
    time.sleep(0.3)
    (options.marks / f"rank-{rank}.json").write_text(json.dumps(measured))
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
