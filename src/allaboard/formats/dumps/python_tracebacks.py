"""Tracebacks in the form of Python's traceback module: chained ones and exception groups are one. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from allaboard.facts import Frame

TRACEBACK_HEAD = "Traceback (most recent call last):"
MAX_TRACEBACK_LINES = 400
"""Lines of one traceback."""
_FRAME = re.compile(r'(?:> |\s+)File "(.{1,1000})", line (\d+), in (.{1,200})$')
_ERROR = re.compile(r"([A-Za-z_][\w.]{0,200})(?:: ?(.*))?$")
_REMOTE = re.compile(r"[\w.]{0,80}RayTaskError\(\w+\): ")
"""Ray's, after which the frames of the other process follow."""
_CHAINED = re.compile(
    r"The above exception was the direct cause of the following exception:"
    r"|During handling of the above exception, another exception occurred:"
    r"|-- Process \d+ terminated with the following (?:error|exception):"  # torch.multiprocessing
)
MAX_MESSAGE_LINES = 12
"""Lines that are read of a message beyond its first."""
_MORE = re.compile(
    # Such as load_state_dict's; not an exception group's, nor a progress bar.
    r"(?![ \t]*\d{1,3}%\|)[ \t]+[^\s|+]"
    # DDP's, of parameters without a gradient.
    r"|If you already have done the above, then|Parameter(?: indice)?s which did not receive grad"
)
_GRAPH = "Graph execution error:"
_TRACED = "in user code:"
"""How TensorFlow tells what was raised while a tf.function was traced, with its places in the code."""
_PLACE = re.compile(r"\s+File \"|Detected at node |<stack traces unavailable>")
_GUTTER = re.compile(r"\s+(?:\| ?|\+[-+]{2,}(?: \d+ -+)?|\+ )")
"""What an exception group puts before the lines of its parts."""


class Traceback(NamedTuple):
    """``begin`` and ``end``: its lines, the second exclusive; of what it is chained to, too. The others
    are of the last exception, which is what reached the top; ``first`` is the one it began with, in words."""

    begin: int
    end: int
    type: str
    message: str
    frames: tuple[Frame, ...]
    root_cause: str = ""

    @property
    def user_frame(self) -> Frame | None:
        """The innermost line of the user's own code."""
        return next((f for f in reversed(self.frames) if f.is_user), None)

    @property
    def summary(self) -> str:
        """Type, message and place in one line."""
        place = f" at {self.user_frame}" if self.user_frame is not None else ""
        return f"{self.type}: {self.message[:200]}{place}"


def find_tracebacks(lines: Sequence[str]) -> list[Traceback]:
    """All of them in these lines, in order."""
    found: list[Traceback] = []
    grouped = -1
    for at, line in enumerate(lines):
        if TRACEBACK_HEAD not in line or (found and at < found[-1].end and at >= grouped):
            continue
        if "+ Exception Group " + TRACEBACK_HEAD in line:
            grouped = _group_end(lines, at)
        one = _read(lines, at, grouped if at < grouped else 0)
        if one is None:
            continue
        before = found[-1] if found else None
        if before is not None and (before.begin < grouped > at or _chained(lines, before.end, at)):
            first = before.root_cause or before.summary
            one = one._replace(begin=before.begin, root_cause=first)
            found.pop()
        found.append(one)
    return found


def _read(lines: Sequence[str], at: int, grouped: int) -> Traceback | None:
    frames: list[Frame] = []
    for number in range(at + 1, min(len(lines), at + MAX_TRACEBACK_LINES)):
        line = _GUTTER.sub("", lines[number], count=1) if number < grouped else lines[number]
        if frame := _FRAME.match(line):
            frames.append(Frame(frame[1], int(frame[2]), frame[3]))
        elif line[:1] not in ("", " ", "\t", ">") and not (frames and _REMOTE.match(line)):
            error = _ERROR.match(line)
            if error is None or not frames:
                return None
            message = error[2] or ""
            if error[2] == "":  # TensorFlow's messages begin on the line after their type
                message = " ".join(lines[number + 1 : number + 3]).strip()
            more = _more(lines, number + 1) if error[2] else []
            message = "\n".join([message, *more])
            kind = error[1].rpartition(".")[2]
            end = max(number + 1 + len(more), grouped)
            end = _closed(lines, number, end)
            if message.startswith(_TRACED):
                message, end = _traced(lines, number + 1, frames)
                message = message.removeprefix(f"{kind}: ")
            if message.startswith(_GRAPH):
                message, end = _graph(lines, number + 1, message)
            return Traceback(at, end, kind, message[:1000], tuple(frames))
    return None


def _more(lines: Sequence[str], at: int) -> list[str]:
    """What else of the message stands on the lines after it."""
    found = []
    for line in lines[at : at + MAX_MESSAGE_LINES]:
        if _MORE.match(line) is None:
            break
        found.append(line.rstrip())
    return found


def _closed(lines: Sequence[str], at: int, end: int) -> int:
    """The end of a message whose first line leaves brackets open, as a printed array does, where they are
    closed; else ``end``."""
    depth = 0
    for number, line in enumerate(lines[at : at + MAX_TRACEBACK_LINES], at):
        depth += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        if depth <= 0 or TRACEBACK_HEAD in line:
            return max(end, number + 1) if depth <= 0 else end
    return end


def _traced(lines: Sequence[str], at: int, frames: list[Frame]) -> tuple[str, int]:
    """What was raised, and where it ends; the places are added to ``frames``."""
    said, number = _TRACED, at
    for number, line in enumerate(lines[at : at + MAX_TRACEBACK_LINES], at):
        if line.strip() and not line.startswith("    "):
            return said, number
        if place := _FRAME.match(line):
            frames.append(Frame(place[1], int(place[2]), place[3].rstrip(" *")))
        elif re.match(r"    \S", line):
            said = line.strip()
    return said, min(len(lines), number + 1)


def _graph(lines: Sequence[str], at: int, message: str) -> tuple[str, int]:
    """TensorFlow's: what failed stands after the places of the operation in the code; and where it ends."""
    said: list[str] = []
    for number, line in enumerate(lines[at : at + MAX_TRACEBACK_LINES], at):
        if TRACEBACK_HEAD in line:
            break
        if _PLACE.match(line):
            said.clear()
        elif line.strip():
            said.append(line.strip())
        if "[Op:" in line:
            return "\n".join([message, *said]), number + 1
    return message, at


def _group_end(lines: Sequence[str], at: int) -> int:
    end = at + 1
    while end < len(lines) and _GUTTER.match(lines[end]):
        end += 1
    return end


def _chained(lines: Sequence[str], end: int, at: int) -> bool:
    if (
        "Original " + TRACEBACK_HEAD in lines[at]
    ):  # torch's: of another process, or thread, in the message
        return True
    return any(map(_CHAINED.search, lines[max(end, at - 4) : at]))
