"""The hot path in C leaves in the black box what the one in Python leaves, and harms no program."""

from __future__ import annotations

import gc
import inspect
import math
import os
import pickle
import random
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import pytest

from allaboard import probe
from allaboard.probe import event_fields, layout
from events_of_rank import FLOAT, KINDS, WAYS, Rank, Tensor, differing, load
from probed import VERSIONS, Program, python

sys.path.insert(0, str(Path(__file__).parents[2]))
import hatch_build

HOME = Path(probe.__file__).parent


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


@pytest.fixture
def ranks(homes: dict[str, Path], tmp_path: Path) -> Iterator[dict[str, Rank]]:
    made = {way: Rank(way, str(homes[way]), str(tmp_path)) for way in WAYS}
    assert made["events_c"].native is not None and made["events_python"].native is None
    yield made
    for rank in made.values():
        rank.here.box = None


@pytest.mark.parametrize("seed", range(6))
def test_the_same_events_leave_the_same_bytes(ranks: dict[str, Rank], seed: int) -> None:
    for rank in ranks.values():
        rank.events(seed)
    assert differing(list(ranks.values())) == []
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
    assert differing(list(ranks.values())) == []


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
    assert differing(list(ranks.values())) == []


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
    assert differing(list(ranks.values())) == []


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
    memory = load("events_c", "", "blackbox").mmap.mmap(-1, layout.SIZE)
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


@pytest.fixture(params=VERSIONS)
def program(
    homes: dict[str, Path], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Program]:
    path = os.pathsep.join((str(homes["events_c"] / "start"), str(tmp_path)))
    one = Program(tmp_path, python(request.param), environment={"PYTHONPATH": path})
    yield one
    one.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_python_leaves_the_same_bytes(
    homes: dict[str, Path], tmp_path: Path, version: str
) -> None:
    """All of them with what was built for one."""
    script = Path(__file__).parents[1] / "events_of_rank.py"
    words = [python(version), "-W", "error", script, *homes.values(), tmp_path, "1", "2", "3"]
    ended = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.stderr == ""
    assert ended.stdout == "[True, False] [] True True\n" * 3


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
