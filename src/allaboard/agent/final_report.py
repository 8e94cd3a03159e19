"""Builds the `Report` that every output renders from the last view and the findings."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from allaboard import __version__
from allaboard.analysis.configuration.member_environment import environment_facts
from allaboard.analysis.parameter_servers import (
    break_down_time,
    find_placement,
    has_parameter_servers,
    only_serves,
)
from allaboard.analysis.stalls.unfinished_wait import unfinished_wait
from allaboard.facts import Exit, Finding, JobView, Member, Outcome, RetryAdvice
from allaboard.facts.attempts import RoundReport, TaskReturn
from allaboard.facts.report import Report, Times, WorkerReport
from allaboard.facts.signal_name import signal_name
from allaboard.report.unseen import unseen_lines

EXIT_CODES = {
    Outcome.COMPLETED: 0,
    Outcome.FAILED: 1,
    Outcome.USAGE: 2,
    Outcome.ROLL_CALL_FAILED: 3,
    Outcome.HANG: 4,
    Outcome.INTERRUPTED: 130,
}
"""Exit code of each outcome. An interruption by another signal than SIGINT gives 128 + its number."""


def exit_code(outcome: Outcome, interrupted_by: int = 0) -> int:
    """Return the exit code of allaboard for this outcome."""
    if outcome is Outcome.INTERRUPTED and interrupted_by:
        return 128 + interrupted_by
    return EXIT_CODES[outcome]


def shell_exit_code(end: Exit) -> int:
    """Return the exit code that a shell reports for this end of a process: 128 + the signal if one killed
    it."""
    return 128 + end.signal if end.signal is not None else end.code or EXIT_CODES[Outcome.FAILED]


def build_worker_report(view: JobView, member: Member) -> WorkerReport:
    """Return one member as the report shows it."""
    end = member.exit
    served = has_parameter_servers(view)
    trained = member.step > 0 and member.run.span > 0 and not served
    placed = find_placement(view).get(f"{member.who.job}:{member.who.index}") if served else None
    return WorkerReport(
        job=member.who.job,
        index=member.who.index,
        rank=member.who.rank,
        host=member.who.host,
        pid=member.who.pid,
        exit_code=end.code if end is not None else None,
        signal=signal_name(end.signal) if end is not None and end.signal is not None else None,
        phase=member.phase.name.lower(),
        step=member.step,
        trained_s=round(member.run.span, 3) if trained else 0.0,
        spent=member.spent if trained else None,
        unfinished_wait_s=round(unfinished_wait(view, member), 3) if trained else 0.0,
        peak_memory_nbytes=member.peak_rss_nbytes,
        times=_times(view, member) if served else None,
        cpu_cores=round(member.run.cpu, 3) if served else 0.0,
        allowed_cores=member.run.allowed if served else 0.0,
        pairs=member.pairs if served else (),
        variables=placed.variables if placed is not None else 0,
        variables_nbytes=placed.bytes if placed is not None else 0,
    )


def _times(view: JobView, member: Member) -> Times | None:
    breakdown = break_down_time(view, member, whole_training=True)
    if breakdown is None:
        return None
    return Times(
        seconds=round(breakdown.span, 3),
        own=round(breakdown.own_code, 3),
        computing=round(breakdown.computing, 3),
        servers=round(breakdown.waiting_for_servers, 3),
        workers=round(breakdown.waiting_for_workers, 3),
        chief=round(breakdown.waiting_for_chief, 3),
        server=breakdown.busiest_server,
        is_handed_work=only_serves(member),
    )


def assemble_report(
    *,
    job: str,
    command: tuple[str, ...],
    outcome: Outcome,
    reason: str,
    code: int,
    started: str,
    seconds: float,
    run_dir: str,
    view: JobView,
    findings: tuple[Finding, ...],
    notes: tuple[str, ...],
    rounds: tuple[RoundReport, ...] = (),
    returns: tuple[TaskReturn, ...] = (),
    options: tuple[str, ...] = (),
    commit: str = "",
    retry: RetryAdvice | None = None,
) -> Report:
    """Return the report of a run that has ended; ``seconds`` is its duration."""
    members = [m for m in view.members if not m.candidate]
    workers = tuple(build_worker_report(view, m) for m in members)
    declared = max((m.declared.world_size for m in members if m.declared is not None), default=0)
    ranks = sum(not m.launcher for m in members)
    return Report(
        allaboard=__version__,
        job=job,
        command=command,
        outcome=outcome,
        reason=reason,
        exit_code=code,
        retry=retry,
        started=started,
        seconds=round(seconds, 3),
        run_dir=run_dir,
        workers=workers,
        step_spread=view.step_spread,
        findings=findings,
        notes=notes,
        unseen=unseen_lines(view),
        restarts=max(0, len(rounds) - 1),
        rounds=rounds,
        returns=returns,
        world_size=max(declared, view.launched, ranks),
        hosts=tuple(sorted({m.who.host for m in members if m.who.host})),
        framework=next((m.framework for m in members if m.framework), ""),
        versions={
            fact.name.removeprefix(VERSION_PREFIX): fact.value
            for fact in environment_facts(members)
            if fact.name.startswith(VERSION_PREFIX)
        },
        options=options,
        commit=commit,
        steps_per_s=_steps_per_s(workers),
        waiting_share=_waiting_share(workers),
        peak_memory_nbytes=max((w.peak_memory_nbytes for w in workers), default=0),
    )


def _steps_per_s(workers: Sequence[WorkerReport]) -> float:
    """Return the rate of the member that did the most steps, without a wait that never ended."""
    furthest = max(workers, key=lambda w: w.step, default=None)
    if furthest is None or not furthest.step:
        return 0.0
    moving_s = furthest.trained_s - max(w.unfinished_wait_s for w in workers if w.step)
    return round(furthest.step / moving_s, 4) if moving_s > 0 else 0.0


def _waiting_share(workers: Sequence[WorkerReport]) -> float:
    """Return the median share of training in which members waited for others, to the end of the run."""
    shares = [
        (w.spent.sync + w.unfinished_wait_s) / w.trained_s
        for w in workers
        if w.spent is not None and w.trained_s > 0
    ]
    return round(median(shares), 4) if shares else 0.0


VERSION_PREFIX = "version "
