"""What a member waits for outside of the job, as its system call shows it, and what to do. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from allaboard.facts import Evidence, Member
from allaboard.late_pattern import compile_late

_NAME_SERVER = "name server "
_NAMED_PIPE = "named pipe "
_UNREAD = compile_late(r"^(?:(pid (\d{1,10})[^\n]{0,20})|somebody) to read the full ")
_STORE_CALL = compile_late(r"\b(\w{0,40}store)\w{0,8}\.(?:wait|get|multi_get)\s*\(")
"""A wait for keys of a store of PyTorch, in C: only the source line shows it."""


def awaited_end_clause(member: Member) -> str:
    """Return ``waiting for an answer from 10.0.0.5:443``; "" if it is not known."""
    end = member.stack.awaited_end if member.stack is not None else ""
    if end and _store_call(member):
        return f"waiting for a key of the store at {end.rpartition(' ')[2]} that nobody has set"
    return f"waiting for {end}" if end else ""


def _store_call(member: Member) -> re.Match[str] | None:
    leaf = member.stack.frames[0] if member.stack is not None and member.stack.frames else None
    return _STORE_CALL.search(leaf.text) if leaf is not None and leaf.is_user else None


def awaited_end_evidence(members: Sequence[Member]) -> tuple[Evidence, ...]:
    """Return one observation for each thing that some of the members wait for."""
    return tuple(
        Evidence(f"{member.who.name} is {clause}", "/proc/PID/syscall")
        for member in members
        if (clause := awaited_end_clause(member))
    )[:3]


def awaited_end_advice(members: Sequence[Member]) -> str:
    """Return what to do about the first name server, pipe or key of a store that one of them waits for; ""
    for none."""
    for member in members:
        end = member.stack.awaited_end if member.stack is not None else ""
        if end and (call := _store_call(member)):
            return (
                f"see which rank should set this key ({call[1]}.set), whether it has come there, and whether "
                "both write the key alike; what serves the store only keeps it"
            )
        if _NAME_SERVER in end:
            server = end.partition(_NAME_SERVER)[2]
            return (
                f"see why the name server {server} of {member.who.host} does not answer "
                "(/etc/resolv.conf), or write the names into /etc/hosts"
            )
        if (unread := _UNREAD.search(end)) and unread[1]:
            return (
                f"see why {unread[1]} does not read: is it stopped, a pager, or at its own work? "
                f"on {member.who.host}: ps -o pid,stat,args -p {unread[2]}"
            )
        if unread:
            return "see which process should read this pipe, and why it does not"
        if _NAMED_PIPE in end:
            pipe = end.partition(_NAMED_PIPE)[2]
            return f"see who should open the other end of {pipe}"
    return ""
