"""How a rank went through its data: written by the probe, read by the agent."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from allaboard.blackbox.data_loops import DataLoopReader
from allaboard.blackbox.reader import OpenBox
from allaboard.probe import layout
from allaboard.probe.blackbox import Box
from allaboard.probe.data_loops import Loops


def boxes(folder: Path) -> tuple[Box, DataLoopReader]:
    path = folder / f"{os.getpid()}.box"
    box = Box(str(path))
    return box, OpenBox(path).data_loops


def test_passes_and_batches_come_back(tmp_path: Path) -> None:
    box, reader = boxes(tmp_path)
    assert reader.loops() == ()
    loops = Loops(box)
    for batches in (3, 5):
        one = loops.begin(sys._getframe(0))
        assert one is not None
        for n in range(batches):
            assert one.batch() is (n < 4)
            one.sample(8, 100 + n, 40 + n)
        one.whole()
    (loop,) = reader.loops()
    assert (loop.pass_, loop.batches, loop.ended, loop.whole) == (2, 5, 2, 5)
    assert loop.place.function == "test_passes_and_batches_come_back"
    assert [(b.pass_, b.number) for b in loop.samples] == [(1, n) for n in (1, 2, 3)] + [
        (2, n) for n in (1, 2, 3, 4, 5)
    ]
    assert loop.samples[-1].digest == 104


def test_a_pass_that_is_broken_off_has_no_whole(tmp_path: Path) -> None:
    box, reader = boxes(tmp_path)
    loops = Loops(box)
    passes = []
    for _ in range(2):
        one = loops.begin(sys._getframe(0))
        assert one is not None
        passes.append(one)
        passes[0].batch()  # an older iterator that is still in use says nothing about the new pass
    passes[0].whole()
    (loop,) = reader.loops()
    assert (loop.pass_, loop.batches, loop.ended, loop.whole) == (2, 0, 1, 0)


def test_there_is_room_for_so_many_places(tmp_path: Path) -> None:
    box, reader = boxes(tmp_path)
    loops = Loops(box)
    code = "\n".join(["found.append(begin(sys._getframe(0)))"] * (layout.LOOPS + 3))
    found: list[object] = []
    exec(code, {"found": found, "begin": loops.begin, "sys": sys})
    assert [f is None for f in found] == [False] * layout.LOOPS + [True] * 3
    assert len(reader.loops()) == layout.LOOPS


def test_garbage_is_read_without_harm(tmp_path: Path) -> None:
    box, reader = boxes(tmp_path)
    for byte in (0xFF, 0x0A, 0x39, 0x01):
        box.map[layout.LOOPS_AT :] = bytes([byte]) * (layout.SIZE - layout.LOOPS_AT)
        reader.loops()
