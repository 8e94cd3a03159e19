"""From the last picture of a round to how it went."""

from __future__ import annotations

from collections.abc import Callable

from allaboard.analysis.failures.failure_causality import order_failures
from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.analysis.parameter_servers.parameter_servers import how_ended, name
from allaboard.analysis.stalls.early_exit import find_early_exits
from allaboard.facts import Cause, JobView, Member, Outcome, RoundEnd, Saves

FIRST_STEP_NOTE = "first step"
"""The note in which the probe leaves the number that the framework gave to a member's first step."""


def summarize_round(
    number: int,
    view: JobView,
    outcome: Outcome,
    reason: str,
    findings: tuple[str, ...] = (),
    final: bool = False,
) -> RoundEnd:
    """The round whose last view this is."""
    people = [m for m in view.members if not m.launcher]
    fastest = max(people, key=lambda m: m.step, default=None)
    return RoundEnd(
        number=number,
        outcome=outcome,
        reason=reason,
        seconds=round(view.now - view.launched_at, 3),
        steps=fastest.step if fastest is not None else 0,
        first=_first(people),
        saved=_kept(people, lambda k: k.saved),
        restored=_kept(people, lambda k: k.restored),
        cause=None
        if outcome is Outcome.COMPLETED or _asked(view, outcome)
        else find_root_cause(view),
        findings=findings,
        final=final,
    )


def _asked(view: JobView, outcome: Outcome) -> bool:
    """Whether it ended at the user's word alone, on whichever host."""
    return outcome is Outcome.INTERRUPTED and not order_failures(view).root_failures


def find_root_cause(view: JobView) -> Cause | None:
    """Who began it; None where nobody failed by itself (it was ended for a hang, or by the user)."""
    found = order_failures(view)
    gone = (
        find_early_exits(view)
        if not any(not has_lost_peer(m) for m in found.root_failures)
        else None
    )
    if gone is not None:
        one = gone[0][0]
        return Cause(who=name(one), what="left early, with exit code 0", steps=one.step)
    first = next(iter(found.root_failures + found.consequences + found.evaluators), None)
    return None if first is None else describe_end(first)


def describe_end(member: Member) -> Cause:
    """How a member that has ended came to its end."""
    raised = member.raised
    if raised is not None and raised.where is not None:
        where = raised.where
        place = f"{where.file}:{where.line}"
        return Cause(
            who=name(member),
            what=f"raised {raised.type} at {place.rpartition('/')[2]}",
            error=raised.type,
            place=place,
            steps=member.step,
        )
    if raised is not None:
        return Cause(who=name(member), what=f"raised {raised.type}", steps=member.step)
    assert member.exit is not None
    return Cause(who=name(member), what=how_ended(member.exit), steps=member.step)


def _first(members: list[Member]) -> int | None:
    """Members of one job count alike; where their counts differ, nothing is known."""
    told = {m.notes[FIRST_STEP_NOTE] for m in members if FIRST_STEP_NOTE in m.notes and m.step}
    (only,) = told if len(told) == 1 else ("",)
    return int(only) if only.isdecimal() else None


def _kept(members: list[Member], which: Callable[[Saves], int]) -> int | None:
    """Of those who write or read checkpoints, usually one."""
    return max((which(m.kept) for m in members if m.kept is not None), default=None)
