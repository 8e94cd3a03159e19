"""Collectives in a destructor, which Python calls at a moment of its own in each process. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.facts import Frame, Member

_DESTRUCTOR = "__del__"


def destructor_advice(function: str, file: str, line: int) -> str:
    """Return what to do about a collective that is called in this function; "" unless it is a destructor."""
    if function != _DESTRUCTOR:
        return ""
    return (
        f"take the collective out of __del__ at {file}:{line}: Python calls it when an object is dropped, at "
        "another moment on each rank; call a close() at one place on all ranks instead"
    )


def destructor_call_advice(members: Sequence[Member]) -> str:
    """Return what to do about members that stand in a collective below a destructor; "" if none does."""
    for member in members:
        frame = _destructor_of(member)
        if frame is not None:
            return destructor_advice(frame.function, frame.file, frame.line)
    return ""


def _destructor_of(member: Member) -> Frame | None:
    frames = member.stack.frames if member.stack is not None else ()
    return next((f for f in frames if f.is_user and f.function == _DESTRUCTOR), None)
