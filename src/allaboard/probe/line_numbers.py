"""At which line a frame is, also where Python itself does not know.

Some instructions are of no line (3.11 and later): that of a loop's or a ``with``'s own upkeep, at which an
interrupt may come. ``tb_lineno`` is None then, -1 in 3.11.2 and before, and a traceback says "line -1".
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType, TracebackType


def raised_at(traceback: TracebackType) -> int:
    """The line at which this entry of a traceback raised, else the one before it in the code."""
    line: int | None = traceback.tb_lineno
    return (
        line
        if line and line > 0
        else _last_line_before(traceback.tb_frame.f_code, traceback.tb_lasti)
    )


def runs_at(frame: FrameType) -> int:
    """The line at which a frame is, else the one before it in the code."""
    line: int | None = frame.f_lineno
    return line if line and line > 0 else _last_line_before(frame.f_code, frame.f_lasti)


def _last_line_before(code: CodeType, instruction: int) -> int:
    line_before = code.co_firstlineno
    lines = getattr(code, "co_lines", None)  # from Python 3.10 on
    for start, _, line in lines() if lines is not None else ():
        if start > instruction:
            break
        line_before = line if line and line > 0 else line_before
    return line_before
