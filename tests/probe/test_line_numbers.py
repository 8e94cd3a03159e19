"""The line of an exception, also where Python's own traceback has none."""

from __future__ import annotations

import sys
from types import FunctionType

import pytest

from allaboard.probe.line_numbers import raised_at
from probed import Program

NO_LINES = (
    "def bare(): raise ValueError('x')\n"
    "code = bare.__code__\n"
    "table = {'co_linetable': b''} if hasattr(code, 'co_linetable') else {}\n"
    "bare.__code__ = code.replace(**table)\n"
)


def test_an_exception_at_an_instruction_of_no_line_is_kept(any_program: Program) -> None:
    ended = any_program.run(NO_LINES + "bare()\n")
    seen = any_program.read(ended.pid)
    assert seen.raised is not None and seen.raised.where is not None
    assert (seen.raised.type, seen.raised.where.function) == ("ValueError", "bare")
    assert not any("garbled" in note for note in seen.notes.values())


def test_in_a_thread_it_is_noted(program: Program) -> None:
    ended = program.run(NO_LINES + "import threading\nthreading.Thread(target=bare).start()\n")
    noted = program.read(ended.pid).notes["thread raised"]
    assert noted.startswith("ValueError: x at ") and noted.endswith("in bare")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="another form of the table of lines")
def test_the_line_before_it_in_the_code() -> None:
    def raises() -> None:
        raise ValueError

    code = raises.__code__
    units = len(code.co_code) // 2
    some = bytes([0xE8, 4 << 1])  # one unit, four lines below the first, without columns
    none = bytes([0xF8 | 7]) * (units // 8) + bytes([0xF8 | (units % 8)])
    bare = FunctionType(code.replace(co_linetable=some + none), {"ValueError": ValueError})
    with pytest.raises(ValueError) as caught:
        bare()
    entry = caught.tb.tb_next
    assert entry is not None
    line: int | None = entry.tb_lineno
    assert line in (None, -1)
    assert raised_at(entry) == code.co_firstlineno + 4
