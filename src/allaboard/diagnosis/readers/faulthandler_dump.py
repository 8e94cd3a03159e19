"""What Python's faulthandler wrote: at a signal, after a time, or when native code crashed."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

from allaboard.analysis.log_messages import speaker
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Exit, Frame, Glimpse, Stack, Testimony
from allaboard.formats.dumps.faulthandler import dumps, last_dumps
from allaboard.formats.dumps.process_roles import role
from allaboard.formats.dumps.rank_hints import by_variables
from allaboard.formats.dumps.stack_frames import parse_faulthandler

_FATAL = re.compile(r"^(?:\[\w+\]:? ?)?Fatal Python error: ([^\n]{1,100})", re.MULTILINE)
_SIGNALS = {
    "Segmentation fault": signal.SIGSEGV,
    "Aborted": signal.SIGABRT,
    "Bus error": signal.SIGBUS,
    "Illegal instruction": signal.SIGILL,
    "Floating-point exception": signal.SIGFPE,
    "Floating point exception": signal.SIGFPE,
}
NEAR = 400
"""Characters above a dump in which a variable is of its process."""
WHOLE = 1 << 20
"""Characters of the last dump: a hundred threads of a hundred frames."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    fatal = _FATAL.search(text)
    glimpses = tuple(_asked_for(exhibit, text)) if fatal is None else _crashed(exhibit, text, fatal)
    if not glimpses and fatal is None and any(True for _ in dumps(text)):
        torn = "a stack dump that is torn, or that another process wrote over: give each a file of its own"
        return Testimony(notes=(f"{exhibit.name}: {torn}",))
    return Testimony(glimpses=glimpses) if glimpses else None


def _crashed(exhibit: Exhibit, text: str, fatal: re.Match[str]) -> tuple[Glimpse, ...]:
    place = exhibit.place(text.count("\n", 0, fatal.start()))
    rank = speaker(text[fatal.start() : text.find("\n", fatal.start())], exhibit.rank)
    number = _SIGNALS.get(fatal[1].strip())
    if number is not None:
        said = f"Fatal Python error: {fatal[1]}"
        ended = Exit(at=0.0, signal=int(number), last_line=said)
        return (Glimpse(origin=place, rank=rank, pid=exhibit.pid, exit=ended),)
    frames = _current(text[fatal.end() : fatal.end() + WHOLE])
    if not frames:
        return ()
    stack = Stack(frames=frames, taken_at=0.0, by="faulthandler")
    return (Glimpse(origin=place, rank=rank, pid=exhibit.pid, stack=stack),)


def _asked_for(exhibit: Exhibit, text: str) -> Iterator[Glimpse]:
    """One of each process that wrote into this file. Of several in the file of one rank, the last is it: who
    was started anew writes on in the same file."""
    found = last_dumps(text)
    roles = [role("", one.frames) for one in found]
    # Just above it alone: in the log of several, one may have printed it long before.
    told = [by_variables(text[max(0, d.begin - NEAR) : d.begin], [0])[0] for d in found]
    chosen = [n for n, what in enumerate(roles) if not what]
    for number, (one, what, rank) in enumerate(zip(found, roles, told, strict=True)):
        alone = chosen[-1:] == [number] if exhibit.rank >= 0 else len(chosen) == 1
        if not what and not alone and exhibit.rank >= 0:
            continue
        end = text.find("\n", one.begin)
        named = speaker(text[one.begin : end], exhibit.rank) if not what else -1
        yield Glimpse(
            origin=exhibit.place(text.count("\n", 0, one.begin)),
            rank=rank if rank >= 0 and not what else named,
            pid=exhibit.pid if len(found) == 1 else 0,
            host=exhibit.host,
            guess=exhibit.local if not what else -1,
            stack=Stack(frames=one.frames, taken_at=0.0, by="faulthandler"),
            role=what,
        )


def _current(part: str) -> tuple[Frame, ...]:
    found = re.search(r"^Current thread 0x([0-9a-f]+)", part, re.MULTILINE)
    return parse_faulthandler(part, int(found[1], 16)) if found is not None else ()


READER = LogReader(read=read_log)
