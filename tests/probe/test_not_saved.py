"""A checkpoint that could not be written counts for nothing, and is noted until one is."""

from __future__ import annotations

import pytest

from allaboard.analysis.stalls.failing_checkpoint import NOT_SAVED_NOTE
from probed import Program

CODE = """
import os
from _allaboard_probe import layout, member, hooks
def write(why):
    if why:
        raise OSError(why)
    return 7
save = hooks.aside(layout.CHECKPOINT, write)
for why in {}:
    try:
        assert save(why) == 7
    except OSError as error:
        assert str(error) == why
os._exit(0)
"""


@pytest.mark.parametrize(
    ("tries", "saved", "noted"),
    [
        ([""], 1, None),
        (["", "full", "still full"], 1, "2 OSError: still full at "),
        (["full", "full", ""], 1, None),
        (["full", "", "full"], 1, "1 OSError: full at "),
    ],
)
def test_what_was_not_written(
    program: Program, tries: list[str], saved: int, noted: str | None
) -> None:
    ended = program.run(CODE.format(tries))
    assert ended.code == 0, ended.err
    told = program.box(ended.pid).read_snapshot()
    assert told.spent.saved == saved
    note = told.notes.get(NOT_SAVED_NOTE)
    assert note is None if noted is None else note is not None and note.startswith(noted)
    assert note is None or note.endswith("script.py:11 in <module>")
