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
from .signal_errors import reraise_from_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType, TracebackType
    from typing import Any

MAX_WORD_LENGTH = 200
"""Characters of one argument, note or path."""
MAX_FRAMES = 40
MAX_CHAIN = 4
"""Exceptions that are recorded of those before the one that reached the top."""
MAX_CHAIN_FRAMES = 4
"""Innermost frames of each of them."""
MAX_CHAIN_MESSAGE = 400
"""Characters of the message of each of them."""
LIMITS = (("Too many open files", "SC_OPEN_MAX"), ("can't start new thread", "SC_CHILD_MAX"))
"""What an exception says that a limit of this process explains, and the limit's name, see sysconf(3)."""


def identity(worker: int, notes: Mapping[str, str]) -> str:
    """Return who this is: script, Python, and what the hooks noted of the framework."""
    argv = sys.argv[:8] if hasattr(sys, "argv") else []
    facts: dict[str, Any] = {
        "worker": worker,
        "argv": [str(a)[:MAX_WORD_LENGTH] for a in argv],
        "python": sys.version.split()[0],
        "host": os.uname().nodename,
        "notes": {k: v[:MAX_WORD_LENGTH] for k, v in notes.items()},
    }
    text = _json(facts)
    if not _fits("identity", text):
        text = _json(dict(facts, argv=[], notes={k: v[:32] for k, v in notes.items()}))
    if not _fits("identity", text):
        text = _json(dict(facts, argv=[], notes={}))
    return text


def declared(declaration: dict[str, Any]) -> str:
    """Return a declaration as JSON; a cluster too large for the box is counted instead."""
    text = _json(declaration)
    if not _fits("declared", text):
        text = _json(
            dict(declaration, cluster={}, cluster_size=len(declaration.get("cluster", ())))
        )
    return text


def exception(
    kind: type[BaseException],
    value: BaseException,
    traceback: TracebackType | None,
    raised_at_s: float,
) -> str:
    """An exception with its frames, innermost first, and those before it, as many as there is room for."""
    message = _said(value)
    facts: dict[str, Any] = {
        "type": getattr(kind, "__name__", str(kind))[:MAX_WORD_LENGTH],
        "message": _short(message),
        "at": raised_at_s,
        "limit": _named_limit(message),
        "chain": _chain(value),
    }
    kept_frames = _frames(traceback)
    text = _json(dict(facts, frames=kept_frames))
    if not _fits("raised", text):
        facts["chain"] = facts["chain"][:1]
        text = _json(dict(facts, frames=kept_frames))
    while kept_frames and not _fits("raised", text):
        kept_frames = kept_frames[: len(kept_frames) // 2]
        text = _json(dict(facts, frames=kept_frames))
    return text


def _frames(traceback: TracebackType | None) -> list[tuple[str, int, str]]:
    """The frames of a traceback, innermost first."""
    frames: deque[tuple[str, int, str]] = deque(maxlen=MAX_FRAMES)
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.appendleft(
            (
                code.co_filename[-MAX_WORD_LENGTH:],
                raised_at(traceback),
                code.co_name[:MAX_WORD_LENGTH],
            )
        )
        traceback = traceback.tb_next
    return list(frames)


def _chain(value: BaseException) -> list[dict[str, Any]]:
    """The exceptions before this one, the latest first.

    What ``raise … from None`` hides from the traceback was being handled all the same.
    """
    links: list[dict[str, Any]] = []
    seen = {id(value)}
    is_cause = True
    while len(links) < MAX_CHAIN:
        is_cause = is_cause and value.__cause__ is not None
        before = value.__context__ if value.__cause__ is None else value.__cause__
        if before is None or id(before) in seen:
            break
        seen.add(id(before))
        links.append(
            {
                "type": type(before).__name__[:MAX_WORD_LENGTH],
                "message": _said(before)[:MAX_CHAIN_MESSAGE],
                "frames": _frames(before.__traceback__)[:MAX_CHAIN_FRAMES],
                "is_cause": is_cause,
            }
        )
        value = before
    return links


def _named_limit(message: str) -> int:
    """Ours of what it says that there is none left of; 0 where it says no such thing."""
    for phrase, name in LIMITS:
        if phrase in message:
            try:
                return os.sysconf(name)  # `resource` would have to be loaded from a file
            except (OSError, ValueError):
                return 0
    return 0


def _said(value: BaseException) -> str:
    try:
        # The program's own __str__ may raise.
        return str(value)
    except Exception as error:
        reraise_from_handler(error)
        return "<%s in str()>" % type(error).__name__


def one_line(
    kind: type[BaseException], value: BaseException, traceback: TracebackType | None
) -> str:
    """An exception and the innermost line of the user's own code, in short."""
    where = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not where or not any(part in code.co_filename for part in FOREIGN):
            where = "%s:%d in %s" % (
                code.co_filename[-80:],
                raised_at(traceback),
                code.co_name[:40],
            )
        traceback = traceback.tb_next
    message = _said(value).split("\n")[0]
    if message.startswith("[/"):  # gloo puts the path of its source before what it says
        message = message.partition("] ")[2] or message
    message = message[:80]
    name = getattr(kind, "__name__", str(kind))[:40]
    return "%s: %s at %s" % (name, message, where) if message else "%s at %s" % (name, where)


def caller(frame: FrameType | None) -> str:
    """The innermost line of the user's own code from this frame on outwards; that frame's where none is."""
    where = ""
    while frame is not None:
        code = frame.f_code
        is_own = not any(part in code.co_filename for part in FOREIGN)
        if is_own or not where:
            where = "%s:%d in %s" % (code.co_filename[-80:], runs_at(frame), code.co_name[:40])
        if is_own:
            break
        frame = frame.f_back
    return where


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
