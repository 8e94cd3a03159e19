"""Exceptions that were caught in another process and raised again here: place and message of the original.

`torch.utils.data`, `torch.multiprocessing` and TensorFlow's `py_function` put the traceback of the other
process or thread into the message (in the form of Python's traceback module). The line to fix is in there.
"""

from __future__ import annotations

import re

import msgspec

from allaboard.facts import Frame, Raised
from allaboard.late_pattern import compile_late

_TRACEBACK_START = "Traceback (most recent call last):\n"
_CUT_MARK = "\n...\n"
"""Mark with which the probe replaces the middle of a long message."""
_FRAME_LINE = compile_late(r'^  File "(.+)", line (\d+), in (.+)$')
_ERROR_LINE = compile_late(r"^([A-Za-z_][\w.]*)(?:: (.*))?$")


def unwrap_root_exception(raised: Raised) -> Raised:
    """Return the exception of the innermost traceback in the message; ``raised`` itself if there is none."""
    head, separator, traceback_text = raised.message.rpartition(_TRACEBACK_START)
    _beginning, cut_mark, tail = raised.message.partition(_CUT_MARK)
    # The probe cuts the middle out of a long message. If the innermost traceback began in that part,
    # the frames after the mark are its end.
    if cut_mark and (not separator or _CUT_MARK in traceback_text):
        head, separator, traceback_text = (
            head if separator else _beginning,
            cut_mark,
            tail.partition("\n")[2],
        )
    frames, error_line = _read_traceback(traceback_text.splitlines())
    if not separator or not frames or error_line is None:
        return raised
    message = error_line[2] or ""
    raising_frame = next((f for f in reversed(frames) if f.is_user), frames[-1])
    summary = head.strip().splitlines()[0].strip(" -.:")[:80] if head.strip() else ""
    if "{{" in summary:  # the name of a node of TensorFlow's graph, and the same words once more
        summary = f"raised again as {raised.type}"
    return msgspec.structs.replace(
        raised,
        type=error_line[1].rpartition(".")[2],
        message=f"{message} ({summary})".strip() if summary else message,
        where=raising_frame,
    )


def _read_traceback(lines: list[str]) -> tuple[list[Frame], re.Match[str] | None]:
    """Return the frames of a traceback, outermost first, and the match of the error line after them.

    The message of an exception may go on in further lines, which are left out.
    """
    frames: list[Frame] = []
    for line in lines:
        match = _FRAME_LINE.match(line)
        if match is not None:
            frames.append(Frame(match[1], int(match[2]), match[3]))
        elif frames and line[:1] not in ("", " "):
            return frames, _ERROR_LINE.match(line)
    return frames, None
