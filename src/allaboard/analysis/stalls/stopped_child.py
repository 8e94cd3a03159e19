"""Child processes of a member that are stopped (SIGSTOP, Ctrl-Z), for which it may wait."""

from __future__ import annotations

from allaboard.analysis.member_names import command_on_host
from allaboard.facts import Evidence, JobView, Member

MAX_SHOWN_PIDS = 4
"""Processes that a sentence names before it counts the rest."""


def describe_stopped_children(member: Member) -> str:
    """Return "its process 4711 is stopped (SIGSTOP or Ctrl-Z)"; "" if none is stopped."""
    pids = _stopped_pids(member)
    if not pids:
        return ""
    more = f" and {len(pids) - MAX_SHOWN_PIDS} more" if len(pids) > MAX_SHOWN_PIDS else ""
    named = f"process{'es' if pids[1:] else ''} {', '.join(pids[:MAX_SHOWN_PIDS])}{more}"
    return f"its {named} {'are' if pids[1:] else 'is'} stopped (SIGSTOP or Ctrl-Z)"


def stopped_children_evidence(member: Member) -> tuple[Evidence, ...]:
    """Return for how long each stopped process has been seen in state T."""
    stopped = member.stack.stopped if member.stack is not None else ()
    return tuple(
        Evidence(f"process {pid} in state T for at least {span:.0f} s", f"/proc/{pid}/stat")
        for pid, span in stopped[:MAX_SHOWN_PIDS]
    )


def resume_command(view: JobView, member: Member) -> str:
    """Return the command that resumes the stopped processes; "" if none is stopped."""
    pids = _stopped_pids(member)
    return command_on_host(view, member, f"kill -CONT {' '.join(pids)}") if pids else ""


def _stopped_pids(member: Member) -> list[str]:
    return [str(pid) for pid, _ in member.stack.stopped] if member.stack is not None else []
