"""Processes below a member that are stopped (SIGSTOP, Ctrl-Z): what it waits for may be theirs to make."""

from __future__ import annotations

from allaboard.analysis.member_names import on_host
from allaboard.facts import Evidence, JobView, Member

SHOWN = 4
"""Processes that a sentence has room for."""


def stopped_below(member: Member) -> str:
    """``its process 4711 is stopped (SIGSTOP or Ctrl-Z), not dead``; "" where none is."""
    pids = _pids(member)
    if not pids:
        return ""
    more = f" and {len(pids) - SHOWN} more" if len(pids) > SHOWN else ""
    named = f"process{'es' if pids[1:] else ''} {', '.join(pids[:SHOWN])}{more}"
    return f"its {named} {'are' if pids[1:] else 'is'} stopped (SIGSTOP or Ctrl-Z), not dead"


def states_below(member: Member) -> tuple[Evidence, ...]:
    """For how long each has been seen so."""
    seen = member.stack.stopped if member.stack is not None else ()
    return tuple(
        Evidence(f"process {pid} in state T for at least {span:.0f} s", f"/proc/{pid}/stat")
        for pid, span in seen[:SHOWN]
    )


def wake(view: JobView, member: Member) -> str:
    """What to type to let them go on; "" where none is stopped."""
    pids = _pids(member)
    return on_host(view, member, f"kill -CONT {' '.join(pids)}") if pids else ""


def _pids(member: Member) -> list[str]:
    return [str(pid) for pid, _ in member.stack.stopped] if member.stack is not None else []
