"""Python's tracebacks in logs: who raised what, and in which line of the user's code."""

from __future__ import annotations

import re

from allaboard.contracts import Witness
from allaboard.evidence.messages import speaker
from allaboard.facts import Exhibit, Exit, Frame, Glimpse, Place, Raised, Testimony

_HEAD = "Traceback (most recent call last):"
_FRAME = re.compile(r'\s+File "(.{1,1000})", line (\d+), in (.{1,200})$')
_ERROR = re.compile(r"([A-Za-z_][\w.]{0,200})(?:: (.*))?$")
_PREFIX = re.compile(r"(?:\x1b\[[0-9;]*m)?\[(?:rank|default|worker)?\s?\d{1,7}\]:?(?:\x1b\[0m)? ?")
LAST = 400
"""Lines before the end of a log in which a traceback counts as how its process ended: an earlier one
was caught and logged. The one that torch's own hook writes (``[rank1]:``) always does."""
_LAUNCHERS = ("ChildFailedError", "SignalException")


def hears(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    if _HEAD not in text:
        return None
    lines = text.splitlines()
    found: dict[tuple[int, str], Glimpse] = {}
    for at, line in enumerate(lines):
        if _HEAD not in line:
            continue
        own = line.lstrip().startswith("[rank")
        rank = speaker(line, exhibit.rank)
        glimpse = _read(exhibit, lines, at, rank)
        if glimpse is None or glimpse.raised is None:
            continue
        if not own and len(lines) - at > LAST:
            continue
        if glimpse.raised.type.rpartition(".")[2] in _LAUNCHERS:
            continue  # a launcher's way to say that a child failed
        # Of a chain, the last is what reached the top.
        found[(rank, "" if rank >= 0 else str(glimpse.raised))] = glimpse
    return Testimony(glimpses=tuple(found.values())) if found else None


def _read(exhibit: Exhibit, lines: list[str], at: int, rank: int) -> Glimpse | None:
    frames: list[Frame] = []
    for number in range(at + 1, min(len(lines), at + 400)):
        line = _PREFIX.sub("", lines[number], count=1)
        if frame := _FRAME.match(line):
            frames.append(Frame(frame[1], int(frame[2]), frame[3]))
        elif line[:1] not in ("", " ", "\t"):
            error = _ERROR.match(line)
            if error is None or not frames:
                return None
            own = next((f for f in reversed(frames) if f.is_user), None)
            kind = error[1].rpartition(".")[2]
            message = error[2] or _next(lines, number)
            raised = Raised(type=kind, message=message[:1000], at=0.0, where=own)
            place = Place(file=exhibit.name, line=0 if exhibit.cut else at + 1)
            return Glimpse(origin=place, rank=rank, raised=raised, exit=Exit(at=0.0, code=1))
    return None


def _next(lines: list[str], number: int) -> str:
    """TensorFlow's messages begin on the line after their type."""
    return " ".join(lines[number + 1 : number + 3]).strip()


WITNESS = Witness(hears=hears)
