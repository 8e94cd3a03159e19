"""Batches that a program takes from a dataset of tf.data; the iterator is as much of one as is hooked."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from allaboard.blackbox.data_loops import DataLoopReader
from allaboard.blackbox.reader import OpenBox
from allaboard.probe import member
from allaboard.probe.adapters._tensorflow.dataset_passes import hook_passes
from allaboard.probe.blackbox import Box


class OwnedIterator:
    """Gives so many batches."""

    def __init__(self, count: int) -> None:
        self._left = iter(range(count))

    def __iter__(self) -> OwnedIterator:
        return self

    def __next__(self) -> int:
        return next(self._left)


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DataLoopReader]:
    path = tmp_path / f"{os.getpid()}.box"
    monkeypatch.setattr(member.here, "box", Box(str(path)))
    yield OpenBox(path).data_loops


def hooked() -> Any:
    cls = type("OwnedIterator", (OwnedIterator,), {"__next__": OwnedIterator.__next__})
    hook_passes(SimpleNamespace(OwnedIterator=cls))
    return cls


def test_batches_are_counted_at_the_line_of_the_loop(reader: DataLoopReader) -> None:
    cls = hooked()
    for count in (15, 7):
        assert list(map(int, cls(count))) == list(range(count))
    unfinished = cls(9)
    for _ in range(3):
        next(unfinished)
    loops = {(p.pass_, p.batches, p.ended, p.whole) for p in reader.loops()}
    assert (2, 7, 2, 7) in loops
    assert (1, 3, 0, 0) in loops
    assert {p.place.function for p in reader.loops()} == {
        "test_batches_are_counted_at_the_line_of_the_loop"
    }


def test_another_thread_and_a_process_without_a_black_box_count_nothing(
    reader: DataLoopReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    cls = hooked()
    thread = threading.Thread(target=lambda: list(cls(5)))
    thread.start()
    thread.join()
    monkeypatch.setattr(member.here, "box", None)
    assert list(cls(4)) == [0, 1, 2, 3]
    assert reader.loops() == ()
