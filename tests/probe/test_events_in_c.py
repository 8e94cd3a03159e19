"""The hot path in C leaves in the black box what the one in Python leaves, and harms no program."""

from __future__ import annotations

import gc
import importlib
import inspect
import math
import os
import pickle
import random
import shutil
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from zlib import crc32

import pytest

from allaboard import probe
from allaboard.probe import event_fields, layout
from probed import Program

sys.path.insert(0, str(Path(__file__).parents[2]))
import hatch_build

HOME = Path(probe.__file__).parent
FLOAT, HALF = object(), object()
KINDS = 20
"""Of events, see `Rank.event`."""
WAYS = ("events_c", "events_python")
"""Names under which the probe is imported with and without C."""


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Copies of the probe, one with C built from its present source. Skips without a compiler."""
    made = {way: tmp_path_factory.mktemp(way) / "allaboard" / "probe" for way in WAYS}
    for home in made.values():
        shutil.copytree(HOME, home, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    try:
        hatch_build.compile_events(made["events_c"], ("-Wall", "-Wextra", "-Werror"))
    except hatch_build.NotBuiltError as error:
        if "there is no" not in str(error):
            raise
        pytest.skip(f"not on this machine: {error}")
    yield made
    for name in [n for n in sys.modules if n.partition(".")[0] in WAYS]:
        del sys.modules[name]


def load(way: str, homes: dict[str, Path], name: str) -> Any:
    if way not in sys.modules:
        package = ModuleType(way)
        package.__path__ = [str(homes[way])]
        sys.modules[way] = package
    return importlib.import_module(f"{way}.{name}")


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

    def __init__(self, way: str, homes: dict[str, Path], folder: Path) -> None:
        (folder / way).mkdir()
        self.member = load(way, homes, "member")
        self.blackbox = load(way, homes, "blackbox")
        collectives = load(way, homes, "adapters._torch.collectives")
        loader = load(way, homes, "adapters._torch.data_loader")
        numbers = load(way, homes, "adapters._torch.step_number")
        self.native = load(way, homes, "event_fields").NATIVE
        self.here = self.member.here
        self.here.box = self.box = self.blackbox.Box(str(folder / way / "1.box"))
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
        tensors = load(way, homes, "adapters._torch.tensor_numbers").numbers
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
            with pytest.raises(ValueError, match="no such rank"):
                self.spread(tensor, src=13, group=pg)
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
        with pytest.raises(StopIteration):
            next(self.iterator)

    def left(self) -> bytes:
        """All that stands in the box, but times."""
        raw = bytearray(self.box.map)
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


@pytest.fixture
def ranks(homes: dict[str, Path], tmp_path: Path) -> Iterator[dict[str, Rank]]:
    made = {way: Rank(way, homes, tmp_path) for way in WAYS}
    assert made["events_c"].native is not None and made["events_python"].native is None
    yield made
    for rank in made.values():
        rank.here.box = None


def differing(ranks: dict[str, Rank]) -> list[int]:
    """Where the boxes differ."""
    first, second = (rank.left() for rank in ranks.values())
    return [n for n, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]


@pytest.mark.parametrize("seed", range(6))
def test_the_same_events_leave_the_same_bytes(ranks: dict[str, Rank], seed: int) -> None:
    for rank in ranks.values():
        draw = random.Random(seed)
        kinds = [draw.randrange(KINDS) for _ in range(3000)]
        for kind in kinds:
            rank.event(kind, draw)
    assert differing(ranks) == []
    c, python = ranks.values()
    assert c.seen == python.seen
    assert c.box.steps == python.box.steps > 0
    assert math.isclose(c.box.all_sync, c.box.slot().spent, abs_tol=1.0)


@pytest.mark.parametrize("kind", range(KINDS))
def test_each_kind_alone_leaves_the_same_bytes(ranks: dict[str, Rank], kind: int) -> None:
    for rank in ranks.values():
        draw = random.Random(kind)
        for _ in range(400):
            rank.event(kind, draw)
    assert differing(ranks) == []


def test_counters_begin_anew_in_the_same_way(ranks: dict[str, Rank]) -> None:
    for rank in ranks.values():
        draw = random.Random(1)
        rank.event(0, draw)
        group = next(g for g in rank.recorder.groups.values() if g is not None)
        group.digest = group.path = 0xFFFFFFFF
        rank.box.steps = group.number = 2**40 - 3
        rank.box.main_slot.count = 2**63
        for _ in range(3 * layout.CALLS):
            rank.event(0, draw)
            rank.event(11, draw)
        assert group.number == 2**40 - 3 + 3 * layout.CALLS
    assert differing(ranks) == []


def test_times_are_those_of_the_clock(ranks: dict[str, Rank]) -> None:
    rank = ranks["events_c"]
    for _ in range(5):
        rank.event(0, random.Random(1))
        rank.step(rank.optimizers[0], (), {})
    now = rank.blackbox.monotonic()
    step = layout.STEP.unpack_from(rank.box.map, layout.STEP_AT)
    assert step[0] == step[1] == step[-1] == 5
    assert 0.0 <= now - step[2] < 60.0
    assert step[3] == rank.box.all_input == 0.0
    assert step[4] == rank.box.all_sync
    assert math.isclose(rank.box.all_sync, rank.box.main_slot.spent)
    number, call, again = layout.CALL.unpack_from(rank.box.map, layout.GROUPS_AT)
    assert number == again == 5 and 0.0 <= step[2] - call < 60.0


def test_waiting_for_data_is_timed(ranks: dict[str, Rank]) -> None:
    rank = ranks["events_c"]
    rank.batches_left = 10
    next(rank.iterator)
    first = rank.box.input
    for _ in range(9):
        next(rank.iterator)
    assert 0.0 < first < rank.box.input < 60.0


def test_threads_that_take_turns_are_seen(ranks: dict[str, Rank]) -> None:
    for rank in ranks.values():

        def calls(rank: Rank = rank) -> None:
            for _ in range(40):
                rank.reduce(Tensor(4, FLOAT))

        for turn in (calls, lambda: rank.elsewhere(calls), calls):  # noqa: B023
            turn()
        group = next(g for g in rank.recorder.groups.values() if g is not None)
        assert (group.number, group.ordered) == (120, False)
    assert differing(ranks) == []


def test_parameters_are_hashed_when_asked(ranks: dict[str, Rank]) -> None:
    for rank in ranks.values():
        hashed: list[object] = []
        rank.steps.every = 1
        rank.steps._values.stepped = lambda *given, to=hashed: to.append(given)
        for _ in range(3):
            rank.step(rank.optimizers[0], (), {})
        assert hashed[1:] == [(rank.box, rank.optimizers[0])] * len(hashed[1:]) and len(hashed) == 3


def test_the_memory_is_read_when_due(ranks: dict[str, Rank]) -> None:
    for rank in ranks.values():
        rank.here.memory_due = 0.0
        for _ in range(3):
            rank.step(rank.optimizers[0], (), {})
        assert 0.0 < rank.here.memory_due < math.inf and rank.box.steps == 3


def test_it_is_c_that_notes_what_comes_again(ranks: dict[str, Rank]) -> None:
    """Else all of this would compare Python with itself."""
    rank, slow = ranks["events_c"], []
    for _ in range(4):
        rank.reduce(Tensor(4, FLOAT), op=None, group=rank.groups[1])
        rank.step(rank.optimizers[0], (), {})
        rank.recorder.note = lambda *_: slow.append("note")
        rank.steps._is_training_step = lambda *_: slow.append("step")  # type: ignore[method-assign]
    assert slow == []
    assert rank.box.steps == 4
    rank.recorder.forget()
    rank.reduce(Tensor(4, FLOAT), op=None, group=rank.groups[1])
    assert slow == ["note"]


def test_what_is_wrapped_shows_what_it_wraps(ranks: dict[str, Rank]) -> None:
    for rank in ranks.values():
        assert inspect.isfunction(rank.reduce) and rank.reduce.__wrapped__ == rank.nothing
        assert inspect.signature(rank.reduce) == inspect.signature(rank.nothing)
        assert rank.reduce.__name__ == "nothing"
        assert inspect.isfunction(rank.loader.__next__)
    assert pickle.dumps(
        math.prod
    )  # by name, as functions are: a wrapper has the name of what it wraps


def test_an_exception_passes_as_it_was_raised(ranks: dict[str, Rank]) -> None:
    for rank in ranks.values():
        seen = []
        for _ in range(3):
            with pytest.raises(ValueError, match="no such rank") as caught:
                rank.spread(Tensor(4, FLOAT), src=13)
            entries = caught.traceback
            seen.append((len(entries), entries[-1].name, caught.value.__context__))
            assert rank.box.slot().depth == 0
        # The test, our wrapper, and what it wraps; at the first time what is in Python, too.
        assert seen[0][0] <= 4 and seen[1:] == [(3, "nothing", None)] * 2


def test_wrong_arguments_are_exceptions(ranks: dict[str, Rank], tmp_path: Path) -> None:
    rank = ranks["events_c"]
    native, box, slot = rank.native, rank.box, rank.box.main_slot
    hook = rank.step.__self__
    rank.reduce(Tensor(4, FLOAT))
    group = next(g for g in rank.recorder.groups.values() if g is not None)
    collective = rank.recorder._recent[-1]
    unattached = native.Box()
    calls: list[Callable[[], object]] = [
        lambda: rank.step(),
        lambda: rank.step(1, 2, 3, 4),
        lambda: collective.collective(),
        lambda: collective.collective(1, 2),
        lambda: collective.collective((), {}, 3),
        lambda: collective.remember(),
        lambda: collective.remember((), {}, (1, 2, 3), 4, (1,) * 10),
        lambda: type(hook)().step(1, 2, 3),
        lambda: type(collective)().collective((), {}),
        lambda: type(collective)().remember((), {}, (1, 2, 3), 4, ()),
        lambda: native.hook(),
        lambda: native.hook(0, object(), (), None),
        lambda: native.hook(9, rank.here, (int,) * 4, sys._getframe, int, *[None] * 6),
        lambda: box.attach(bytes(8)),
        lambda: box.attach(bytearray(8)),
        lambda: box.attach(None),
        lambda: box.attach(box.map),
        lambda: slot.enter(),
        lambda: slot.enter("text"),
        lambda: slot.enter(b"n", -1),
        lambda: slot.enter(b"n", 2**70),
        lambda: slot.rename(None),
        lambda: group.call(1, 2, 3),
        lambda: group.call(1, 2, 3, "now"),
        lambda: unattached.step(),
        lambda: native.Slot().enter(b"n"),
        lambda: native.Slot().leave(b"n"),
        lambda: native.Group().call(1, 2, 3, 4.0),
        lambda: setattr(box, "steps", None),
    ]
    for call in calls:
        with pytest.raises((TypeError, ValueError, BufferError, OverflowError)):
            call()
    assert collective.collective((), {}) is None  # without a tensor: as Python does


def test_places_beyond_the_map_are_not_written(ranks: dict[str, Rank]) -> None:
    rank = ranks["events_c"]
    for _ in range(2):
        rank.event(0, random.Random(1))
    group = next(g for g in rank.recorder.groups.values() if g is not None)
    slot = rank.box.main_slot
    for thing, field in ((group, "ring_index"), (group, "call_index"), (slot, "index")):
        kept = getattr(thing, field)
        for far in (-1, layout.SIZE, 2**60):
            setattr(thing, field, far)
            with pytest.raises((TypeError, ValueError)):
                (group.call(1, 2, 3, 4.0) if thing is group else slot.enter(b"n"))
        setattr(thing, field, kept)
    rank.event(0, random.Random(1))
    assert slot.depth == 0


def test_a_box_cannot_be_unmapped_beneath_it(ranks: dict[str, Rank]) -> None:
    rank = ranks["events_c"]
    box = rank.native.Box()
    memory = load("events_c", {}, "blackbox").mmap.mmap(-1, layout.SIZE)
    box.attach(memory)
    with pytest.raises(BufferError):
        memory.close()
    box.step()
    del box
    gc.collect()
    memory.close()
    rank.here.box = SimpleNamespace(ident=0)  # what is no box is Python's to judge
    with pytest.raises(AttributeError):
        rank.reduce(Tensor(4, FLOAT))
    rank.here.box = rank.box
    rank.box.main_slot = None  # or has none: as if all slots were taken
    rank.reduce(Tensor(4, FLOAT))


def test_nothing_leaks(ranks: dict[str, Rank]) -> None:
    rank = ranks["events_c"]
    args, options, tensor = (), {"op": None, "group": rank.groups[1]}, Tensor(4, FLOAT)
    held = (rank.groups[1], FLOAT, tensor, rank.box, rank.box.main_slot, rank.optimizers[0])
    held += (None, True, rank.iterator, rank.here, 4, args)  # type: ignore[assignment]

    def turn(times: int) -> None:
        for n in range(times):
            rank.reduce(tensor, **options)
            rank.gather(tensor, Tensor(4, FLOAT))
            rank.step(rank.optimizers[0], args, {})
            rank.batches_left = 1
            next(rank.iterator)
            if not n % 10:
                rank.recorder.forget()
                with pytest.raises(ValueError, match="no such"):
                    rank.spread(tensor, src=13)
            rank.seen.clear()

    turn(200)
    gc.collect()
    before = [sys.getrefcount(one) for one in held]
    tracemalloc.start()
    turn(100)
    gc.collect()
    first = tracemalloc.get_traced_memory()[0]
    turn(2000)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - first
    tracemalloc.stop()
    after = [sys.getrefcount(one) for one in held]
    assert grown < 20_000
    # None and the like are counted by all of the interpreter.
    assert [b - a for a, b in zip(before, after, strict=True) if abs(b - a) > 100] == []
    assert [b - a for a, b in zip(before[:6], after[:6], strict=True)] == [0] * 6


def test_a_group_is_not_kept_alive(ranks: dict[str, Rank]) -> None:
    for rank in ranks.values():
        before = sys.getrefcount(rank.groups[1])
        for _ in range(3):
            rank.reduce(Tensor(4, FLOAT), group=rank.groups[1])
        after = sys.getrefcount(rank.groups[1])
        assert after == before


FORKS = """
import os, sys
sys.path.insert(0, {folder!r})
from _allaboard_probe import event_fields, member as m
from _allaboard_probe.adapters._torch.step_number import Steps
steps, optimizer = Steps(), type("Adam", (), {{"param_groups": []}})()
steps.add_optimizer()
step = steps.hook
for _ in range(3):
    step(optimizer, (), {{}})
before = bytes(m.here.box.map)
pid = os.fork()
if not pid:
    step(optimizer, (), {{}})
    os._exit(0 if m.here.box is None else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert bytes(m.here.box.map) == before
step(optimizer, (), {{}})
print(event_fields.NATIVE is not None, event_fields.REASON, m.here.box.steps)
"""


@pytest.fixture
def program(homes: dict[str, Path], tmp_path: Path) -> Iterator[Program]:
    path = os.pathsep.join((str(homes["events_c"] / "start"), str(tmp_path)))
    one = Program(tmp_path, environment={"PYTHONPATH": path})
    yield one
    one.close()


def test_a_forked_child_writes_nothing(program: Program) -> None:
    ended = program.run(FORKS.format(folder=str(program.folder)))
    assert (ended.out, ended.err) == ("True  4\n", "")
    assert program.read(ended.pid).step == 4


def test_it_can_be_switched_off(program: Program) -> None:
    program.environment["ALLABOARD_PURE"] = "1"
    ended = program.run(FORKS.format(folder=str(program.folder)))
    assert (ended.out, ended.err) == ("False ALLABOARD_PURE is set 4\n", "")


@pytest.mark.parametrize("content", [b"", b"not a library", b"\x7fELF\x02\x01\x01"])
def test_what_cannot_be_loaded_is_left_alone(
    homes: dict[str, Path], tmp_path: Path, content: bytes
) -> None:
    home = tmp_path / "allaboard" / "probe"
    shutil.copytree(homes["events_python"], home)
    (home / hatch_build.NAME).write_bytes(content)
    one = Program(tmp_path, environment={"PYTHONPATH": str(home / "start")})
    ended = one.run(FORKS.format(folder=str(tmp_path)))
    assert ended.out.startswith("False ") and ended.out.endswith(" 4\n"), ended
    assert ended.err == "" and len(ended.out) > 10
    one.close()


def test_what_was_built_is_of_this_source() -> None:
    """Beside the source it is what an editable installation made, some time."""
    if event_fields.NATIVE is None:
        pytest.skip(f"not built here: {event_fields.REASON}")
    told = "pip install -e . builds it again"
    assert crc32((HOME / "_events.c").read_bytes()) == event_fields.NATIVE.SOURCE & 0xFFFFFFFF, told
