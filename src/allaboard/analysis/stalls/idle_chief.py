"""The chief of TensorFlow 2's parameter servers, when it stands still and hands out no work. Pure."""

from __future__ import annotations

from allaboard.analysis.parameter_servers import TF2_CHIEF_CALL, has_lost_server, only_serves
from allaboard.analysis.stalls.expected_pauses import PAUSED_CORES, is_in_short_pause
from allaboard.analysis.stalls.stall import is_still, member_waits_for_peers
from allaboard.facts import ATTACHED, JobView, Member, Phase

MIN_STILL_S = 15.0
"""Seconds without progress. The workers wait for nothing that must come at once, unlike in a collective."""


def find_idle_chiefs(view: JobView) -> tuple[Member, ...]:
    """Return the chiefs that have stood still in the program's own code for MIN_STILL_S, while all workers
    only serve and are idle; () if a server is lost, which explains it."""
    workers = serving_workers(view)
    if not workers or view.ending or view.now - view.progress_at < MIN_STILL_S:
        return ()
    if has_lost_server(view) or any(m.cpu >= PAUSED_CORES for m in workers):
        return ()
    return tuple(m for m in view.alive if _is_joined_chief(m) and _stands_still(view, m))


def serving_workers(view: JobView) -> tuple[Member, ...]:
    """Return the live workers that do nothing but what the chief asks of them."""
    return tuple(m for m in view.alive if m.who.job == "worker" and only_serves(m))


def _is_joined_chief(member: Member) -> bool:
    # Of one that is examined from outside its task alone is known, and that the workers serve.
    is_chief = (
        member.declared.call == TF2_CHIEF_CALL
        if member.declared is not None
        else member.who.job == "chief" and ATTACHED in member.notes
    )
    return is_chief and Phase.JOINED <= member.phase < Phase.LEAVING


def _stands_still(view: JobView, chief: Member) -> bool:
    return (
        chief.stack is not None
        and chief.stack.user is not None
        and chief.raised is None
        and not chief.is_stopped
        and chief.cpu < PAUSED_CORES
        and is_still(chief)
        and not member_waits_for_peers(chief)
        and not is_in_short_pause(view, chief)
    )
