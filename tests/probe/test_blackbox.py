"""The black box: what the probe writes is what the agent reads, whatever stands in the file."""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allaboard.blackbox.reader import OpenBox
from allaboard.facts import Numbered, Op, Saves
from allaboard.probe import layout, text_records
from allaboard.probe.blackbox import Box, start_ticks
from allaboard.probe.collective_calls import Calls
from probed import Program

DECLARED = {"framework": "torch", "call": "init_process_group", "rank": 1, "world_size": 2}


def pair(folder: Path) -> tuple[Box, OpenBox]:
    path = folder / f"{os.getpid()}.box"
    return Box(str(path), signum=40, stack_fd=200), OpenBox(path)


def test_every_field_comes_back(tmp_path: Path) -> None:
    writer, reader = pair(tmp_path)
    writer.phase(5, 2, now=12.5)
    writer.text("detail", "init_process_group")
    writer.text("declared", json.dumps(DECLARED))
    writer.text("identity", text_records.identity(3, {"torch": "2.13.0"}))
    writer.step()
    slot = writer.slot()
    assert slot is not None
    slot.enter(b"all_reduce")
    seen = reader.read_snapshot()
    assert (seen.phase, seen.phase_since, seen.round) == (5, 12.5, 2)
    assert (seen.detail, seen.step, seen.intervals) == ("init_process_group", 1, ())
    assert seen.declared is not None and seen.declared.rank == 1
    assert seen.op is not None and (seen.op.name, seen.op.number) == ("all_reduce", 1)
    assert seen.ops == 1
    assert seen.notes == {"torch": "2.13.0"}
    assert reader.identity.worker == 3
    assert reader.identity.python == sys.version.split()[0]
    assert (reader.pid, reader.signum, reader.stack_fd) == (os.getpid(), 40, 200)
    assert reader.started == start_ticks(os.getpid())
    assert reader.main_thread == threading.main_thread().ident
    slot.leave(b"all_reduce")
    assert reader.read_snapshot().op is None


def test_what_is_declared_belongs_to_the_init_for_which_it_is(tmp_path: Path) -> None:
    writer, reader = pair(tmp_path)
    seen = []
    for round_ in (1, 2):
        declared = {**DECLARED, "place": f"tcp://h0:{round_}", "round": round_}
        writer.text("declared", text_records.declared(declared))
        between = reader.read_snapshot()  # it has not told yet that it enters another one
        writer.phase(4, round_)
        seen.append(
            [(r.round, r.declared and r.declared.place) for r in (between, reader.read_snapshot())]
        )
    assert seen == [[(0, None), (1, "tcp://h0:1")], [(1, "tcp://h0:1"), (2, "tcp://h0:2")]]


def test_the_agent_answers_through_the_box(tmp_path: Path) -> None:
    writer, reader = pair(tmp_path)
    assert writer.agent() == (0.0, 0, 0)
    reader.write_verdict("rank 2 never came: é")
    reader.write_heartbeat(100.5, 3, 1)
    assert writer.agent() == (100.5, 3, 1)
    assert writer.verdict() == "rank 2 never came: é"


def test_the_file_is_private_and_allocated_in_full(tmp_path: Path) -> None:
    writer, _ = pair(tmp_path)
    status = Path(writer.path).stat()
    assert status.st_mode & 0o777 == 0o600
    assert status.st_blocks * 512 >= layout.SIZE
    assert [p.name for p in tmp_path.iterdir()] == [f"{os.getpid()}.box"]


def test_the_ring_holds_the_last_intervals(tmp_path: Path) -> None:
    writer, reader = pair(tmp_path)
    for _ in range(3 * layout.RING + 5):
        writer.step()
    for age in range(layout.RING):  # times that are easy to check, in the places of the real ones
        n = writer.steps - age
        at = layout.RING_AT + (n % layout.RING) * layout.PACE.size
        struct.pack_into("<d", writer.map, at, 1000.0 - age * (age + 1) / 2)
    seen = reader.read_snapshot()
    assert seen.step == 3 * layout.RING + 5
    assert seen.intervals == tuple(float(n) for n in range(layout.RING - 2, 0, -1))


def test_threads_have_slots_and_the_main_thread_speaks_first(tmp_path: Path) -> None:
    writer, reader = pair(tmp_path)
    entered, end = threading.Barrier(21), threading.Event()
    got: list[bool] = []

    def work() -> None:
        slot = writer.slot()
        got.append(slot is not None)
        if slot is not None:
            slot.enter(b"send")
        entered.wait()
        end.wait()

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    entered.wait()
    try:
        assert sum(got) == layout.SLOTS - 1, "the rest go on without one"
        seen = reader.read_snapshot()
        assert seen.op is not None and seen.op.name == "send"
        assert seen.ops == layout.SLOTS - 1
        mine = writer.slot()
        assert mine is not None and mine is writer.slot()
        mine.enter(b"barrier")
        now = reader.read_snapshot().op
        assert now is not None and now.name == "barrier"
    finally:
        end.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize(("group", "also"), [(1, "gather_object"), (2, ""), (0, "")])
def test_two_threads_in_one_group_are_seen(tmp_path: Path, group: int, also: str) -> None:
    writer, reader = pair(tmp_path)

    def work() -> None:
        slot = writer.slot()
        assert slot is not None
        slot.enter(b"gather_object", group, 8)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    mine = writer.slot()
    assert mine is not None
    mine.enter(b"all_gather", min(group, 1), 7)
    seen = reader.read_snapshot().op
    assert seen is not None and (seen.name, seen.also) == ("all_gather", also)


def test_nested_calls_count_as_the_outermost(tmp_path: Path) -> None:
    writer, reader = pair(tmp_path)
    slot = writer.slot()
    assert slot is not None
    slot.enter(b"all_gather_object")
    slot.enter(b"all_gather")
    slot.leave(b"all_gather")
    seen = reader.read_snapshot()
    assert isinstance(seen.op, Op) and seen.op.name == "all_gather_object"
    assert seen.ops == 1


def test_a_text_is_cut_to_its_room(tmp_path: Path) -> None:
    writer, reader = pair(tmp_path)
    writer.text("detail", "é" * 400)
    room = layout.TEXTS["detail"][1] - layout.TEXT.size
    assert reader.read_snapshot().detail == "é" * (room // 2)
    writer.text("detail", "short \ud800")
    assert reader.read_snapshot().detail == "short ?"


def test_the_numbers_of_steps_and_how_they_went_back(tmp_path: Path) -> None:
    writer, reader = pair(tmp_path)
    assert reader.read_snapshot().numbered is None
    for value in (0, 1, 1, 7, 9):
        writer.number(value)
    assert reader.read_snapshot().numbered == Numbered(0, 9)
    for value in (4, 5, 9):
        writer.number(value)
    assert reader.read_snapshot().numbered == Numbered(0, 9, 1, 9, 4)


def test_checkpoints_stand_at_the_steps_that_were_done(tmp_path: Path) -> None:
    writer, reader = pair(tmp_path)
    assert reader.read_snapshot().kept is None
    writer.count_checkpoint(read=True)
    writer.step()
    writer.step()
    writer.count_checkpoint(read=False)
    writer.step()
    assert reader.read_snapshot().kept == Saves(saved=2, restored=0)


def test_texts_never_touch_each_other() -> None:
    spans = sorted(layout.TEXTS.values())
    assert spans[0][0] >= layout.SLOTS_AT + layout.SLOTS * layout.SLOT_BYTES
    assert all(a + n <= b for (a, n), (b, _) in pairwise(spans))
    assert spans[-1][0] + spans[-1][1] <= layout.SIZE
    assert layout.OP.size <= layout.SLOT_BYTES
    assert layout.RING_AT + layout.RING * layout.PACE.size <= layout.LOOPS_AT
    assert layout.LOSS_AT + layout.LOSS.size <= layout.SLOTS_AT
    assert layout.STEP_AT + layout.STEP.size <= layout.LOSS_AT


def test_half_written_records_are_not_believed(tmp_path: Path) -> None:
    writer, reader = pair(tmp_path)
    writer.text("detail", "before")
    writer.text("raised", '{"type": "ValueError", "message": "x", "at": 1.0}')
    slot = writer.slot()
    assert slot is not None
    slot.enter(b"all_reduce")
    assert reader.read_snapshot().detail == "before"
    offset, _ = layout.TEXTS["detail"]
    struct.pack_into("<II", writer.map, offset, 3, 20)  # a writer that stopped in the middle
    struct.pack_into("<Q", writer.map, layout.SLOTS_AT, 2)  # a slot whose ends do not agree
    struct.pack_into("<I", writer.map, layout.STATE_AT, 9)
    seen = reader.read_snapshot()
    assert seen.detail == "before"
    assert seen.op is None
    assert seen.raised is not None and seen.raised.type == "ValueError"
    writer.text("detail", "after")
    assert reader.read_snapshot().detail == "after", "the next writer mends it"


def test_two_threads_write_one_text(tmp_path: Path) -> None:
    writer, reader = pair(tmp_path)
    words = ["a" * 300, "b" * 300]

    def write(word: str) -> None:
        for _ in range(2000):
            writer.text("detail", word)

    threads = [threading.Thread(target=write, args=(w,)) for w in words]
    for thread in threads:
        thread.start()
    while any(t.is_alive() for t in threads):
        assert reader.read_snapshot().detail in ("", *words)
    assert reader.read_snapshot().detail in words


@pytest.mark.parametrize(
    ("at", "what"), [(0, b"NOTABOX\0"), (8, struct.pack("<I", layout.VERSION + 1))]
)
def test_another_kind_of_file_is_refused(tmp_path: Path, at: int, what: bytes) -> None:
    writer, _ = pair(tmp_path)
    writer.map[at : at + len(what)] = what
    with pytest.raises(ValueError, match="its black box is "):
        OpenBox(tmp_path / f"{os.getpid()}.box")


def test_a_box_under_a_foreign_name_is_refused(tmp_path: Path) -> None:
    writer, _ = pair(tmp_path)
    other = tmp_path / "1.box"
    Path(writer.path).rename(other)
    with pytest.raises(ValueError, match="is that of process"):
        OpenBox(other)


@pytest.mark.parametrize("size", [0, 100, layout.SIZE - 1, layout.SIZE + 1])
def test_a_file_of_another_size_is_refused(tmp_path: Path, size: int) -> None:
    writer, _ = pair(tmp_path)
    os.truncate(writer.path, size)
    with pytest.raises(ValueError, match="bytes"):
        OpenBox(Path(writer.path))


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"cluster":{"a":', '{"frames":[['])
def test_deep_json_says_nothing(tmp_path: Path, opening: str) -> None:
    writer, reader = pair(tmp_path)
    for name in layout.TEXTS:
        writer.text(name, opening * 100_000)
    seen = reader.read_snapshot()
    assert (seen.declared, seen.raised, set(seen.notes)) == (None, None, {"black box"})


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_content_breaks_the_reader(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("box")
    writer, reader = pair(folder)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.sampled_from([128, 192, 256, 320, 1024, 4096, 4608, 8192, 24576]))
        what = data.draw(st.binary(min_size=1, max_size=96))
        writer.map[at : at + len(what)] = what
    reader.read_snapshot()
    reader.read_snapshot()


def test_what_does_not_fit_is_left_out_not_cut(tmp_path: Path) -> None:
    writer, reader = pair(tmp_path)
    told: dict[str, object] = dict(DECLARED, cluster={f"worker:{i}": "é" * 90 for i in range(500)})
    writer.text("declared", text_records.declared(told))
    seen = reader.read_snapshot().declared
    assert seen is not None and seen.rank == 1 and seen.cluster == {}
    writer.text("identity", text_records.identity(7, {f"hook {i}": "x" * 999 for i in range(300)}))
    reader.read_snapshot()
    assert reader.identity.worker == 7


def test_a_rank_of_another_library_is_told(tmp_path: Path) -> None:
    class Rank:
        def __index__(self) -> int:
            return 1

    writer, reader = pair(tmp_path)
    writer.text("declared", text_records.declared(dict(DECLARED, rank=Rank(), backend=object())))
    seen = reader.read_snapshot().declared
    assert seen is not None and seen.rank == 1


def test_the_box_of_a_dead_process_is_read(program: Program) -> None:
    process = program.start(
        "import os, signal; import _allaboard_probe.member as m; m.step(); m.step()\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert program.read(process.pid).step == 2


def test_an_executed_program_takes_the_box_over(program: Program) -> None:
    process = program.start(
        "import os, sys, _allaboard_probe.member as m\n"
        "if len(sys.argv) == 1:\n"
        "    m.step(); m.here.note('first', '1'); m.here.round = 1; m.here.phase(7)\n"
        "    print('once', flush=True); sys.stdin.readline()\n"
        "    os.execv(sys.executable, [sys.executable, sys.argv[0], 'again'])\n"
        "m.here.note('second', '2'); m.step(); m.step(); m.step()\n"
        "print('twice', flush=True); sys.stdin.readline()\n"
    )
    assert process.stdout and process.stdin
    assert process.stdout.readline() == "once\n"
    box = program.box(process.pid)
    first = box.read_snapshot()
    assert first.notes.pop("events")  # by what they are noted
    assert (first.step, first.phase, first.notes) == (1, 7, {"first": "1"})
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "twice\n"
    second = box.read_snapshot()
    assert second.notes.pop("events")  # by what they are noted
    assert (second.step, second.notes) == (3, {"second": "2"})
    assert second.round == 1, "its next init is the second one of this process"
    assert program.members() == [process.pid]


def test_what_is_set_number_by_number_is_laid_out_as_the_records_are(tmp_path: Path) -> None:
    writer, _ = pair(tmp_path)
    writer.input, writer.sync, writer.loss = 0.25, 0.5, 3.5
    times = [writer.step()]
    writer.input, writer.sync = 1.0, 2.0
    times.append(writer.step())
    assert layout.STEP.unpack_from(writer.map, layout.STEP_AT) == (
        2,
        2,
        times[1],
        1.25,
        2.5,
        3.5,
        2,
    )
    paces = [
        layout.PACE.unpack_from(writer.map, layout.RING_AT + n * layout.PACE.size) for n in (1, 2)
    ]
    assert paces == [(times[0], 0.25, 0.5), (times[1], 1.0, 2.0)]
    slot, big = writer.slot(), 1 << 40
    assert slot is not None
    for name in (
        b"all_reduce",
        b"x" * 80,
        b"barrier",
    ):  # a shorter name leaves nothing of a longer one
        slot.enter(name, 3, big, 5.0)
        stored = name[: layout.NAME_BYTES].ljust(layout.NAME_BYTES, b"\0")
        record = (slot.count, 5.0, slot.spent, 4, big, stored, slot.count)
        assert layout.OP.unpack_from(writer.map, slot.offset) == record
        slot.leave(name)
        assert layout.OP.unpack_from(writer.map, slot.offset)[2:4] == (slot.spent, 0)
    group = Calls(writer).group("world", 1, range(4), 2)
    assert group is not None
    for number in range(1, layout.CALLS + 3):
        group.call(number, 7, 11, float(number))
    call = layout.CALL.unpack_from(writer.map, group.offset)
    assert call == (layout.CALLS + 2, float(layout.CALLS + 2), layout.CALLS + 2)
    at = group.offset + layout.CALLS_AT + 2 * layout.ENTRY.size
    assert layout.ENTRY.unpack_from(writer.map, at) == (group.digest, group.path, layout.CALLS + 2)
