"""What Python's faulthandler wrote: at a signal, after a time, or when native code crashed."""

from __future__ import annotations

import re
import signal

from allaboard.contracts import Witness
from allaboard.evidence.messages import speaker
from allaboard.evidence.parse import parse_faulthandler
from allaboard.facts import Exhibit, Exit, Frame, Glimpse, Stack, Testimony

_HEAD = re.compile(
    r"^(?:Current thread|Thread) 0x[0-9a-f]+[^\n]*\(most recent call first\)", re.MULTILINE
)
_FATAL = re.compile(r"^(?:\[\w+\]:? ?)?Fatal Python error: ([^\n]{1,100})", re.MULTILINE)
_SIGNALS = {
    "Segmentation fault": signal.SIGSEGV,
    "Aborted": signal.SIGABRT,
    "Bus error": signal.SIGBUS,
    "Illegal instruction": signal.SIGILL,
    "Floating-point exception": signal.SIGFPE,
    "Floating point exception": signal.SIGFPE,
}
WHOLE = 1 << 20
"""Characters of the last dump: a hundred threads of a hundred frames."""


def hears(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    fatal = _FATAL.search(text)
    begin = fatal.end() if fatal is not None else _last(text)
    if begin is None:
        return None
    part = text[begin : begin + WHOLE]
    frames = _current(part) if fatal is not None else parse_faulthandler(part, 0)
    at = fatal.start() if fatal is not None else begin
    place = exhibit.place(text.count("\n", 0, at))
    end = text.find("\n", at)
    rank = speaker(text[at:end], exhibit.rank)
    number = _SIGNALS.get(fatal[1].strip()) if fatal is not None else None
    if number is not None:
        ended = Exit(
            at=0.0, signal=int(number), last_line=f"Fatal Python error: {fatal[1]}" if fatal else ""
        )
        return Testimony(glimpses=(Glimpse(origin=place, rank=rank, exit=ended),))
    if not frames:
        return None
    stack = Stack(frames=frames, taken_at=0.0, by="faulthandler")
    return Testimony(glimpses=(Glimpse(origin=place, rank=rank, stack=stack),))


def _last(text: str) -> int | None:
    """Where the last dump begins: a file that several dumps were appended to shows the last state.
    CPython writes one blank line between the threads of one dump, and the main thread last."""
    heads = [m.start() for m in _HEAD.finditer(text)]
    if not heads:
        return None
    begin = heads[-1]
    for head in reversed(heads[:-1]):
        between = text[head:begin]
        if not between.endswith("\n\n") or between.count("\n\n") != 1:
            break
        begin = head
        if len(heads) > 100:  # CPython stops after a hundred threads
            break
    return begin


def _current(part: str) -> tuple[Frame, ...]:
    found = re.search(r"^Current thread 0x([0-9a-f]+)", part, re.MULTILINE)
    return parse_faulthandler(part, int(found[1], 16)) if found is not None else ()


WITNESS = Witness(hears=hears)
