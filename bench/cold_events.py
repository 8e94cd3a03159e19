"""What an event of the probe costs where the caches are not its own, here and in another checkout.

The probes of both are loaded into one process, which calls one of their hooks, or the same without a hook, in
an order that is drawn anew each time. Before each call runs what leaves nothing of the hook in the caches: a
step of a small model with Adam, a parser, and a megabyte that is written. So a call is colder than between
the steps of most trainings: the figures are for comparing two checkouts, also on a busy machine, since both
are measured at the same time. Each is the lower quartile of the calls with the hook less that of those
without.
"""

from __future__ import annotations

import ast
import importlib
import os
import random
import shutil
import sys
import tempfile
import time
import weakref
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import sheet

KINDS = ("step", "collective", "loss", "batch", "DDP backward")
MODULES = (
    "member",
    "adapters._torch.collectives",
    "adapters._torch.ddp_backward",
    "adapters._torch.data_loader",
    "adapters._torch.step_number",
    "adapters.torch",
)
WARM_UP, HOT_TURNS, HOT_CALLS = 80, 40, 200
Calls = dict[str, Callable[[], object]]


class Program:
    """What a training script has: a model, a loss, an optimizer, batches, a process group of one rank."""

    def __init__(self, folder: Path) -> None:
        import torch
        import torch.distributed as dist
        from torch import nn

        dist.init_process_group("gloo", f"file://{folder}/store", rank=0, world_size=1)
        model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
        self.parallel = nn.parallel.DistributedDataParallel(model)
        self.roots = (self.parallel(torch.ones(4, 8)).square().mean(),)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        self.tensor = torch.ones(64)
        self.batch = [torch.ones(4, 8), torch.ones(4)]
        other = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        images, adam, big = (
            torch.randn(32, 64),
            torch.optim.Adam(other.parameters()),
            torch.zeros(1 << 18),
        )
        text = "\n".join(f"def f{n}(a):\n    return [x + {n} for x in range(a)]" for n in range(12))

        def use_caches() -> None:
            big.add_(1.0)
            adam.zero_grad()
            other(images).square().mean().backward()
            adam.step()
            ast.parse(text)
            big.add_(1.0)

        self.use_caches = use_caches

    def loader(self) -> Any:
        """Return a class in the place of the iterator of a DataLoader."""
        batch = self.batch

        class Loader:
            def _reset(self) -> None: ...

            def __next__(self) -> object:
                return batch

        return Loader

    def bare_calls(self) -> Calls:
        """Return what is hooked, without hooks; it does nothing."""
        batches = self.loader()()
        return {
            "step": lambda: _after_step(self.optimizer, (), {}),
            "collective": lambda: _nothing(self.tensor),
            "loss": lambda: _nothing(self.roots),
            "batch": lambda: next(batches),
            "DDP backward": lambda: _nothing(self.roots),
        }

    def hooked_calls(self, package: str, folder: Path) -> Calls:
        """Return the same under the probe that can be imported as ``package``."""
        import torch.distributed as dist

        os.environ["ALLABOARD_BOX"] = str(folder)
        modules = {name: importlib.import_module(f"{package}.{name}") for name in MODULES}
        probe = SimpleNamespace(**{name.rpartition(".")[2]: m for name, m in modules.items()})
        probe.member.here.wake()
        probe.member.here.round = 1
        recorder = probe.collectives.Recorder(dist.distributed_c10d)
        reduce = probe.collectives.recorded(recorder, "all_reduce", _nothing)
        reducer, parameters = self.parallel.reducer, list(self.parallel.parameters())
        flat = probe.collectives.Flat(parameters)
        recorder.reducers[id(reducer)] = (weakref.ref(self.parallel.process_group), flat)
        recorder.owners.update((id(p), id(reducer)) for p in parameters)
        run_due = probe.ddp_backward.backward(recorder, _nothing)
        run = probe.ddp_backward.backward(probe.collectives.Recorder(None), _nothing)
        loader = self.loader()
        probe.data_loader.loader(SimpleNamespace(_BaseDataLoaderIter=loader))
        batches, steps = loader(), probe.step_number.Steps()
        steps.add_optimizer()
        count = getattr(steps, "hook", steps.__call__)

        def run_reducer() -> None:
            recorder.pending.append(id(reducer))
            run_due(self.roots)

        return {
            "step": lambda: count(self.optimizer, (), {}),
            "collective": lambda: reduce(self.tensor),
            "loss": lambda: run(self.roots),
            "batch": lambda: next(batches),
            "DDP backward": run_reducer,
        }


def _nothing(argument: object) -> None: ...


def _after_step(optimizer: object, args: object, kwargs: object) -> None: ...


def measure_cold(
    program: Program, ways: dict[str, Calls], rounds: int
) -> dict[tuple[str, str], float]:
    """Return the lower quartile (µs) of each kind of call, each way, with the caches used by others."""
    taken: dict[tuple[str, str], list[float]] = {pair: [] for pair in product(KINDS, ways)}
    order = list(taken)
    for _ in range(rounds):
        random.shuffle(order)
        for kind, way in order:
            call = ways[way][kind]
            program.use_caches()
            begin = time.perf_counter()
            call()
            taken[kind, way].append(time.perf_counter() - begin)
    return {pair: quartile(times) for pair, times in taken.items()}


def measure_hot(ways: dict[str, Calls]) -> dict[tuple[str, str], float]:
    """Return the same of calls in a tight loop."""
    taken: dict[tuple[str, str], list[float]] = {pair: [] for pair in product(KINDS, ways)}
    for _ in range(HOT_TURNS):
        for (kind, way), times in taken.items():
            call = ways[way][kind]
            begin = time.perf_counter()
            for _ in range(HOT_CALLS):
                call()
            times.append((time.perf_counter() - begin) / HOT_CALLS)
    return {pair: quartile(times) for pair, times in taken.items()}


def quartile(times: list[float]) -> float:
    return 1e6 * sorted(times)[len(times) // 4]


def main() -> None:
    parser = sheet.arguments(__doc__)
    parser.add_argument("--against", type=Path, required=True, help="the other checkout")
    parser.add_argument("--rounds", type=int, default=300, help="cold calls of each kind")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    facts = sheet.circumstances(options.python) | {"rounds": options.rounds}
    with tempfile.TemporaryDirectory(prefix="allaboard-bench-", dir="/dev/shm") as name:
        folder = Path(name)
        sys.path.insert(0, name)
        program = Program(folder)
        ways = {"bare": program.bare_calls()}
        for way, root in (("other", options.against), ("here", sheet.ROOT)):
            shutil.copytree(root / "src" / "allaboard" / "probe", folder / f"probe_{way}")
            (folder / way).mkdir()
            ways[way] = program.hooked_calls(f"probe_{way}", folder / way)
        for calls, _ in product((c for w, c in ways.items() if w != "bare"), range(WARM_UP)):
            for call in calls.values():
                call()
        cold, hot = measure_cold(program, ways, options.rounds), measure_hot(ways)
    rows = [
        (kind, *(c[kind, w] - c[kind, "bare"] for c in (cold, hot) for w in ("other", "here")))
        for kind in KINDS
    ]
    head = ("event", "cold, other (µs)", "cold, here (µs)", "tight loop, other", "tight loop, here")
    text = sheet.table(head, rows)
    sheet.page("cold_events", __doc__, facts, text, options.results)


if __name__ == "__main__":
    main()
