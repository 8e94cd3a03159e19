"""Sums up what a preflight left in its run folder, as the one value that every output format renders.
Pure."""

from __future__ import annotations

from collections.abc import Callable

from allaboard import __version__
from allaboard.analysis.roll_call.roll_call import find_roll_calls
from allaboard.diagnosis.logs.run_folder import Run
from allaboard.facts import Finding, JobView, Member, Outcome, Phase, Severity
from allaboard.facts.preflight import Preflight, PreflightMember
from allaboard.preflight.roll_call_passed import is_roll_call_complete
from allaboard.preflight.task import Task

OK, FAILED, INTERRUPTED = "ok", "failed", "interrupted"


def preflight_exit_code(
    outcome: Outcome, findings: tuple[Finding, ...], interrupted_by: int, all_met: bool = True
) -> int:
    """Return 0 if the job would start; 3 if there is an error, the collective failed or the roll call was
    not complete; 128 + signal if it was interrupted."""
    if outcome is Outcome.INTERRUPTED:
        return 128 + (interrupted_by or 2)
    has_error = any(f.severity is Severity.ERROR for f in findings)
    return 3 if has_error or outcome is not Outcome.COMPLETED or not all_met else 0


def exit_code_for_size(size: int) -> Callable[[Outcome, tuple[Finding, ...], int, JobView], int]:
    """Return the function that gives the exit code of a preflight for ``size`` tasks, from its outcome and
    the last view of the job."""
    return lambda outcome, findings, signal_number, view: preflight_exit_code(
        outcome, findings, signal_number, is_roll_call_complete(view, size)
    )


def summarize_run(run: Run, task: Task, mode: str, host: str) -> Preflight:
    """Return what this host knows of the preflight."""
    report, view = run.report, run.view
    exit_code = report.exit_code if report is not None else 3
    outcome = OK if exit_code == 0 else INTERRUPTED if exit_code > 128 else FAILED
    return Preflight(
        allaboard=__version__,
        job=run.job,
        host=host,
        leads=view.leads if view is not None else False,
        outcome=outcome,
        exit_code=exit_code,
        started=report.started if report is not None else "",
        seconds=report.seconds if report is not None else 0.0,
        framework=task.framework,
        mode=mode,
        place=task.meeting_address or next(iter(task.cluster.values()), ""),
        size=task.size,
        met=view is not None and is_roll_call_complete(view, task.size),
        members=_members(view) if view is not None else (),
        links=view.links if view is not None else (),
        collective=_collective(view) if view is not None else "",
        findings=run.findings,
        usual=view.usual if view is not None else None,
    )


def _members(view: JobView) -> tuple[PreflightMember, ...]:
    calls = find_roll_calls(view)
    members = [_member(view, m) for m in view.members if not m.has_no_part]
    # What is absent is known where all meet, and nowhere else.
    missing = calls[0].missing if calls and view.leads else ()
    present_ranks = {m.rank for m in members}
    members += [
        PreflightMember(rank=r, job="worker", index=r, host="", pid=0, state="missing")
        for r in missing
        if r not in present_ranks
    ]
    return tuple(sorted(members, key=lambda m: (m.rank, m.host, m.pid)))


def _member(view: JobView, member: Member) -> PreflightMember:
    return PreflightMember(
        rank=member.who.rank,
        job=member.who.job,
        index=member.who.index,
        host=member.who.host,
        pid=member.who.pid,
        state=_state(member, view.rolled_at is not None),
        ahead=round(view.clocks.get(member.who.host, 0.0), 3),
        facts=dict(sorted(member.facts.items())),
    )


def _state(member: Member, is_roll_call_over: bool) -> str:
    """Return the state of a member as the tables show it. With ``is_roll_call_over`` all were let through;
    the last look at a member may be older than that."""
    if member.phase > Phase.ARRIVED or (is_roll_call_over and member.phase is Phase.ARRIVED):
        return "aboard"
    if member.phase is Phase.ARRIVED:
        return "waits" if member.alive else "gone"
    return "late" if member.alive else "gone"


def _collective(view: JobView) -> str:
    return next((m.notes["collective"] for m in view.members if "collective" in m.notes), "")
