"""All hooks of one process that are in C, too, around functions that do nothing; standard library only.

As a program, it runs the same events through both and prints what differs:
``python events_of_rank.py FOLDER-WITH-C FOLDER-WITHOUT-C FOLDER-FOR-BOXES SEED...``
"""

from __future__ import annotations

import importlib
import math
import os
import random
import sys
import threading
from types import ModuleType, SimpleNamespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

FLOAT, HALF = object(), object()
KINDS = 20
"""Of events, see `Rank.event`."""
EVENTS = 3000
WAYS = ("events_c", "events_python")
"""Names under which the probe is imported with and without C."""


def load(way: str, home: str, name: str) -> Any:
    """Import a module of the probe in this folder, as another one than that of other folders."""
    if way not in sys.modules:
        package = ModuleType(way)
        package.__path__ = [home]
        sys.modules[way] = package
    return importlib.import_module("%s.%s" % (way, name))


class Pg:
    group_name = "0"


class Tensor:
    def __init__(self, elements: int, dtype: object, address: int = 0) -> None:
        self.shape = (elements,)
        self.dtype = dtype
        self.address = address

    def numel(self) -> int:
        return math.prod(self.shape)

    def data_ptr(self) -> int:
        return self.address


class Odd(Tensor):
    """A tensor that does not say what it is."""

    def numel(self) -> int:
        raise RuntimeError("no such thing")


class Module:
    """One with a parameter."""


class Optimizer:
    """One that counts no steps."""

    param_groups: tuple[object, ...] = ()


class Rank:
    """All hooks of one process, on a box of its own, around functions that do nothing."""

    def __init__(self, way: str, home: str, folder: str) -> None:
        os.mkdir(os.path.join(folder, way))
        self.layout = load(way, home, "layout")
        self.member = load(way, home, "member")
        self.blackbox = load(way, home, "blackbox")
        collectives = load(way, home, "adapters._torch.collectives")
        loader = load(way, home, "adapters._torch.data_loader")
        numbers = load(way, home, "adapters._torch.step_number")
        self.native = load(way, home, "event_fields").NATIVE
        self.here = self.member.here
        self.here.box = self.box = self.blackbox.Box(os.path.join(folder, way, "1.box"))
        self.here.round, self.here.memory_due, self.here.is_pausing = 1, math.inf, False
        self.box.phase(self.member.TRAINING, 1)
        self.groups = [Pg(), Pg()]
        world = SimpleNamespace(
            default_pg=self.groups[0],
            pg_group_ranks={pg: {0: 0, 1: 1} for pg in self.groups},
            pg_map=dict.fromkeys(self.groups),
        )
        module = SimpleNamespace(_world=world, get_rank=lambda: 0)
        self.recorder = collectives.Recorder(module)
        self.reduce = collectives.recorded(self.recorder, "all_reduce", self.nothing)
        self.spread = collectives.recorded(self.recorder, "broadcast", self.nothing)
        self.gather = collectives.recorded(self.recorder, "all_gather_into_tensor", self.nothing)
        self.objects = collectives.recorded(self.recorder, "all_gather_object", self.nested)
        tensors = load(way, home, "adapters._torch.tensor_numbers").numbers
        self.module, self.registered = Module(), Tensor(77, FLOAT, 4096)
        tensors.add_parameter(self.module, "weight", self.registered)
        self.batches_left = 0

        class Loader:
            def _reset(self) -> None: ...

            def __next__(inner) -> int:
                if not self.batches_left:
                    raise StopIteration
                self.batches_left -= 1
                return self.batches_left

        loader.loader(SimpleNamespace(_BaseDataLoaderIter=Loader))
        self.loader = Loader
        self.iterator = Loader()
        self.optimizers = [Optimizer(), Optimizer()]
        self.steps = numbers.Steps()
        self.steps.add_optimizer()
        self.step = self.steps.hook
        self.seen: list[object] = []

    def nothing(self, *args: Any, **kwargs: Any) -> object:
        self.seen.append((len(args), sorted(kwargs)))
        if kwargs.get("src") == 13:
            raise ValueError("no such rank")
        return kwargs.get("async_op") or None

    def nested(self, *args: Any, **kwargs: Any) -> None:
        self.reduce(Tensor(3, FLOAT))

    def elsewhere(self, call: Callable[[], object]) -> None:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()

    def event(self, kind: int, draw: random.Random) -> None:
        """One event of this kind; what varies of it is drawn."""
        size, dtype = draw.randrange(1, 5), draw.choice((FLOAT, HALF))
        tensor, pg = Tensor(size, dtype), draw.choice((None, *self.groups))
        if kind == 0:
            self.reduce(tensor)
        elif kind == 1:
            self.reduce(tensor, op=draw.choice(("max", None)), group=pg)
        elif kind == 2:
            self.reduce(tensor, "max", pg, True)
        elif kind == 3:
            self.spread(tensor, src=draw.randrange(2), group=pg)
        elif kind == 4:
            self.spread(tensor=tensor, src=1, group_src=draw.choice((None, 1)))
        elif kind == 5:
            self.gather(Tensor(2 * size, dtype), tensor, group=pg)
        elif kind == 6:
            self.objects([], size)
        elif kind == 7:
            self.reduce(draw.choice((self.registered, Tensor(77, FLOAT, 8192))))
        elif kind == 8 and not draw.randrange(20):
            try:
                self.spread(tensor, src=13, group=pg)
            except ValueError as error:
                self.seen.append(str(error))
        elif kind == 9 and not draw.randrange(20):
            self.reduce(Odd(3, FLOAT))
        elif kind == 10 and not draw.randrange(20):
            self.elsewhere(lambda: self.reduce(tensor, group=pg))
        elif kind == 11:
            self.step(self.optimizers[0], (), {})
        elif kind == 12 and not draw.randrange(10):
            self.step(self.optimizers[1], (), {})
        elif kind == 13:
            self.batches_left = draw.choice((0, 3, 70))
            self.iterator = draw.choice((self.iterator, self.loader()))
            for _ in self.forever():
                next(self.iterator)
        elif kind == 14 and not draw.randrange(10):
            self.here.is_pausing = not self.here.is_pausing
        elif kind == 15 and not draw.randrange(20):
            self.recorder.refresh_groups()
        elif kind == 16:
            slot = self.box.slot()
            slot.enter(b"n" * draw.choice((3, 60, 64, 200)), 1, size)
            slot.enter(b"within")
            slot.leave(b"within")
            slot.leave(b"")
        elif kind == 17:
            self.box.loss = draw.choice((math.nan, 0.5))
        elif kind == 18 and not draw.randrange(20):
            self.here.box = None
            self.reduce(tensor)
            self.here.box = self.box
        elif kind == 19:
            draw.choice((self.first_place, self.second_place))(tensor)

    def first_place(self, tensor: Tensor) -> None:
        self.reduce(tensor)

    def second_place(self, tensor: Tensor) -> None:
        self.reduce(tensor)

    def forever(self) -> Iterator[None]:
        """Until the batches end."""
        while self.batches_left:
            yield
        self.seen.append(next(self.iterator, "the end"))

    def left(self) -> bytes:
        """All that stands in the box, but times."""
        raw, layout = bytearray(self.box.map), self.layout
        doubles = [layout.STATE_AT + 8, *range(layout.STEP_AT + 16, layout.STEP_AT + 40, 8)]
        doubles += range(layout.RING_AT, layout.RING_AT + layout.RING * 24, 8)
        doubles += [layout.GROUPS_AT + n * layout.GROUP_BYTES + 8 for n in range(layout.GROUPS)]
        for slot in range(layout.SLOTS):
            at = layout.SLOTS_AT + slot * layout.SLOT_BYTES
            doubles += [at + 8, at + 16]
            raw[at + layout.THREAD_AT : at + layout.THREAD_AT + 8] = bytes(8)
        for at in doubles:
            raw[at : at + 8] = bytes(8)
        raw[: layout.STATE_AT] = bytes(layout.STATE_AT)
        at, room = layout.TEXTS["identity"]
        raw[at : at + room] = bytes(room)
        return bytes(raw)

    def events(self, seed: int) -> None:
        """Many of all kinds."""
        draw = random.Random(seed)
        for kind in [draw.randrange(KINDS) for _ in range(EVENTS)]:
            self.event(kind, draw)


def differing(ranks: list[Rank]) -> list[int]:
    """Where the boxes of two differ."""
    first, second = (rank.left() for rank in ranks)
    return [n for n, (a, b) in enumerate(zip(first, second)) if a != b]


def main() -> None:
    homes, folder = sys.argv[1:3], sys.argv[3]
    for seed in map(int, sys.argv[4:]):
        under = os.path.join(folder, "%d" % seed)
        os.mkdir(under)
        ranks = [Rank(way, home, under) for way, home in zip(WAYS, homes)]
        for rank in ranks:
            rank.events(seed)
        natives = [rank.native is not None for rank in ranks]
        equal = ranks[0].seen == ranks[1].seen
        print(natives, differing(ranks), equal, ranks[0].box.steps > 0)


if __name__ == "__main__":
    main()
