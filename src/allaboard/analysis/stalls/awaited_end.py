"""What a member waits for outside of the job, as its system call shows it, and what to do. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.facts import Evidence, Member

_NAME_SERVER = "name server "
_NAMED_PIPE = "named pipe "


def awaited_end_clause(member: Member) -> str:
    """Return ``waiting for an answer from 10.0.0.5:443``; "" if it is not known."""
    end = member.stack.awaited_end if member.stack is not None else ""
    return f"waiting for {end}" if end else ""


def awaited_end_evidence(members: Sequence[Member]) -> tuple[Evidence, ...]:
    """Return one observation for each thing that some of the members wait for."""
    return tuple(
        Evidence(f"{member.who.name} is {clause}", "/proc/PID/syscall")
        for member in members
        if (clause := awaited_end_clause(member))
    )[:3]


def awaited_end_advice(members: Sequence[Member]) -> str:
    """Return what to do about the first name server or pipe that one of them waits for; "" for none."""
    for member in members:
        end = member.stack.awaited_end if member.stack is not None else ""
        if _NAME_SERVER in end:
            server = end.partition(_NAME_SERVER)[2]
            return (
                f"see why the name server {server} of {member.who.host} does not answer "
                "(/etc/resolv.conf), or write the names into /etc/hosts"
            )
        if _NAMED_PIPE in end:
            pipe = end.partition(_NAMED_PIPE)[2]
            return f"see who should open the other end of {pipe}"
    return ""
