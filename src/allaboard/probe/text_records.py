"""What the probe tells in words, as JSON that always fits its room: cut JSON would say nothing."""

from __future__ import annotations

import json
import operator
import os
import sys
from collections import deque

from .collective_calls import FOREIGN
from .layout import TEXT, TEXTS
from .line_numbers import raised_at, runs_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType, TracebackType
    from typing import Any

WORD = 200
"""Characters of one argument, note or path."""
FRAMES = 40
LIMITS = (("Too many open files", "SC_OPEN_MAX"), ("can't start new thread", "SC_CHILD_MAX"))
"""What an exception says that a limit of this process explains, and the limit's name, see sysconf(3)."""


def identity(worker: int, notes: Mapping[str, str]) -> str:
    """Who this is: script, Python, and what the hooks noted of the framework."""
    argv = sys.argv[:8] if hasattr(sys, "argv") else []
    facts: dict[str, Any] = {
        "worker": worker,
        "argv": [str(a)[:WORD] for a in argv],
        "python": sys.version.split()[0],
        "host": os.uname().nodename,
        "notes": {k: v[:WORD] for k, v in notes.items()},
    }
    text = _json(facts)
    if not _fits("identity", text):
        text = _json(dict(facts, argv=[], notes={k: v[:32] for k, v in notes.items()}))
    if not _fits("identity", text):
        text = _json(dict(facts, argv=[], notes={}))
    return text


def declared(told: dict[str, Any]) -> str:
    """What a framework's init was told; a cluster too large for the box is counted instead."""
    text = _json(told)
    if not _fits("declared", text):
        text = _json(dict(told, cluster={}, cluster_size=len(told.get("cluster", ()))))
    return text


def exception(
    kind: type[BaseException], value: BaseException, traceback: TracebackType | None, at: float
) -> str:
    """An exception with its frames, innermost first, as many as there is room for."""
    frames: deque[tuple[str, int, str]] = deque(maxlen=FRAMES)
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.appendleft((code.co_filename[-WORD:], raised_at(traceback), code.co_name[:WORD]))
        traceback = traceback.tb_next
    said = _said(value)
    facts: dict[str, Any] = {
        "type": getattr(kind, "__name__", str(kind))[:WORD],
        "message": _short(said),
        "at": at,
        "limit": _limit(said),
    }
    kept = list(frames)
    text = _json(dict(facts, frames=kept))
    while kept and not _fits("raised", text):
        kept = kept[: len(kept) // 2]
        text = _json(dict(facts, frames=kept))
    return text


def _limit(said: str) -> int:
    """Ours of what it says that there is none left of; 0 where it says no such thing."""
    for words, name in LIMITS:
        if words in said:
            try:
                return os.sysconf(name)  # `resource` would have to be loaded from a file
            except (OSError, ValueError):
                return 0
    return 0


def _said(value: BaseException) -> str:
    try:
        return str(value)
    except Exception as error:
        return "<%s in str()>" % type(error).__name__


def one_line(
    kind: type[BaseException], value: BaseException, traceback: TracebackType | None
) -> str:
    """An exception and the innermost line of the user's own code, in short."""
    place = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not place or not any(part in code.co_filename for part in FOREIGN):
            place = "%s:%d in %s" % (
                code.co_filename[-80:],
                raised_at(traceback),
                code.co_name[:40],
            )
        traceback = traceback.tb_next
    said = _said(value).split("\n")[0]
    if said.startswith("[/"):  # gloo puts the path of its source before what it says
        said = said.partition("] ")[2] or said
    said = said[:80]
    name = getattr(kind, "__name__", str(kind))[:40]
    return "%s: %s at %s" % (name, said, place) if said else "%s at %s" % (name, place)


def caller(frame: FrameType | None) -> str:
    """The innermost line of the user's own code from this frame on outwards; that frame's where none is."""
    place = ""
    while frame is not None:
        code = frame.f_code
        own = not any(part in code.co_filename for part in FOREIGN)
        if own or not place:
            place = "%s:%d in %s" % (code.co_filename[-80:], runs_at(frame), code.co_name[:40])
        if own:
            break
        frame = frame.f_back
    return place


def _short(text: str) -> str:
    """Beginning and end: a traceback of another process ends with what matters."""
    return text if len(text) <= 2000 else text[:395] + "\n...\n" + text[-1600:]


def _fits(name: str, text: str) -> bool:
    return len(text.encode("utf-8", "replace")) <= TEXTS[name][1] - TEXT.size


def _json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, ensure_ascii=False, default=plain)


def plain(value: object) -> object:
    """A rank may be an integer of another library."""
    try:
        return operator.index(value)  # type: ignore[arg-type]  # it says itself whether it is one
    except TypeError:
        return str(value)
