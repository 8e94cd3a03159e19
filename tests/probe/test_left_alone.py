"""What is the program's own is not touched: its batches, its hooks, its threads."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from allaboard.probe.adapters._torch import data_loader
from allaboard.probe.blackbox import Box
from allaboard.probe.layout import SLOTS
from probed import Program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def test_a_batch_that_can_be_read_once_is_not_read() -> None:
    for batch in (zip([1], [2], strict=True), (n for n in (1, 2)), map(str, (1, 2)), iter([1, 2])):
        assert data_loader._describe_batch(batch) == (-1, 0)
        assert len(list(batch)) in (1, 2)
    once = zip([1, 2], [3, 4], strict=True)
    data_loader._describe_batch([once])
    assert list(once) == [(1, 3), (2, 4)]


SHOWS = """
import sys
try:
    raise RuntimeError("handled")
except RuntimeError:
    sys.excepthook(*sys.exc_info())
"""


def test_an_exception_that_is_only_shown_is_no_end(program: Program) -> None:
    ended = program.run(SHOWS)
    assert ended.code == 0 and "handled" in ended.err
    assert program.read(ended.pid).raised is None


def test_one_that_a_hook_of_the_program_hands_on_is(program: Program) -> None:
    hook = "import sys\nbefore = sys.excepthook\nsys.excepthook = lambda *e: before(*e)\nraise OSError('x')"
    ended = program.run(hook)
    raised = program.read(ended.pid).raised
    assert ended.code == 1 and raised is not None and raised.type == "OSError"


def test_threads_that_have_ended_leave_their_places(tmp_path: Path) -> None:
    box = Box(str(tmp_path / f"{os.getpid()}.box"))
    told: list[tuple[bool, str]] = []

    def works(number: int) -> None:
        slot = box.slot()
        if slot is not None and number % 2:
            slot.enter(b"call %d" % number)
            slot.leave(b"")
        told.append((slot is not None, box.called()))

    for number in range(3 * SLOTS):
        thread = threading.Thread(target=works, args=(number,))
        thread.start()
        thread.join()
    assert all(there for there, _ in told)
    assert told[:4] == [(True, ""), (True, "call 1"), (True, ""), (True, "call 3")]
    assert sys.getrefcount(box) < 10
