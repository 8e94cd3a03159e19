"""How a round went, from the last picture of it."""

from __future__ import annotations

from collections.abc import Callable

from allaboard.analysis.failures.failure_causality import order_failures
from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.analysis.parameter_servers import describe_exit, task_name
from allaboard.analysis.stalls.early_exit import find_early_exits
from allaboard.facts import Cause, JobView, Member, Outcome, RoundEnd, Saves

FIRST_STEP_NOTE = "first step"
"""Note in which the probe leaves the number that the framework gave to a member's first step."""


def summarize_round(
    number: int,
    view: JobView,
    outcome: Outcome,
    reason: str,
    findings: tuple[str, ...] = (),
    final: bool = False,
) -> RoundEnd:
    """Return the summary of the round whose last picture is ``view``."""
    members = [m for m in view.members if not m.launcher]
    fastest = max(members, key=lambda m: m.step, default=None)
    has_cause = outcome is not Outcome.COMPLETED and not _was_only_interrupted(view, outcome)
    return RoundEnd(
        number=number,
        outcome=outcome,
        reason=reason,
        seconds=round(view.now - view.launched_at, 3),
        steps=fastest.step if fastest is not None else 0,
        first=_first_step(members),
        saved=_last_checkpoint(members, lambda saves: saves.saved),
        restored=_last_checkpoint(members, lambda saves: saves.restored),
        cause=find_root_cause(view) if has_cause else None,
        findings=findings,
        final=final,
    )


def _was_only_interrupted(view: JobView, outcome: Outcome) -> bool:
    """Return True if the user ended the round, on whichever host, and no member failed by itself."""
    return outcome is Outcome.INTERRUPTED and not order_failures(view).root_failures


def find_root_cause(view: JobView) -> Cause | None:
    """Return which member began the end, and how; None if none failed by itself (the job was ended for a
    hang, or by the user)."""
    order = order_failures(view)
    if all(has_lost_peer(m) for m in order.root_failures):
        early_exits = find_early_exits(view)
        if early_exits is not None:
            member = early_exits[0][0]
            return Cause(
                who=task_name(member), what="left early, with exit code 0", steps=member.step
            )
    failed = next(iter(order.root_failures + order.consequences + order.evaluators), None)
    return None if failed is None else describe_end(failed)


def describe_end(member: Member) -> Cause:
    """Return how a member that has ended came to its end."""
    raised = member.raised
    if raised is not None and raised.where is not None:
        where = raised.where
        location = f"{where.file}:{where.line}"
        return Cause(
            who=task_name(member),
            what=f"raised {raised.type} at {location.rpartition('/')[2]}",
            error=raised.type,
            place=location,
            steps=member.step,
        )
    if raised is not None:
        return Cause(who=task_name(member), what=f"raised {raised.type}", steps=member.step)
    assert member.exit is not None
    return Cause(who=task_name(member), what=describe_exit(member.exit), steps=member.step)


def _first_step(members: list[Member]) -> int | None:
    """Return the framework's number of the first step; None if members differ, as nothing is known then."""
    numbers = {m.notes[FIRST_STEP_NOTE] for m in members if FIRST_STEP_NOTE in m.notes and m.step}
    (number,) = numbers if len(numbers) == 1 else ("",)
    return int(number) if number.isdecimal() else None


def _last_checkpoint(members: list[Member], step_of: Callable[[Saves], int]) -> int | None:
    """Return the last step that is in a checkpoint of any member; usually one member writes or reads them."""
    return max((step_of(m.saves) for m in members if m.saves is not None), default=None)
