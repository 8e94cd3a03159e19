"""Builds the snapshot of a job from the picture that the rules read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from allaboard.facts import Finding, JobView, Member, Outcome, Phase, RankState, Severity, Snapshot
from allaboard.facts.attempts import RoundReport, TaskReturn
from allaboard.facts.snapshot.run_state import Point, RestartState, RunPhase, RunState
from allaboard.feed.host_states import host_states, link_states, server_states
from allaboard.feed.rank_states import rank_states, shown_members

MAX_FINDINGS = 500
"""Findings in one snapshot; those that are left out are counted."""
SLOWER_THAN_MEDIAN = 1.2
"""How many times the median own time of a step a member must take to be named as the slowest."""
_SEVERITIES = tuple(Severity)


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a run besides its members. All of it may change between two snapshots."""

    job: str
    """The job's id."""
    command: tuple[str, ...] = ()
    """The command of the workers, without passwords."""
    allaboard: str = ""
    """Version of allaboard."""
    host: str = ""
    """This host."""
    leads: bool = True
    """True if this host decides for the job."""
    run_dir: str = ""
    """The run folder."""
    started: str = ""
    """When the run began, ISO 8601."""
    elapsed_s: float = 0.0
    """Seconds since then."""
    outcome: Outcome | None = None
    """How the run ended; None while it runs."""
    reason: str = ""
    """Why it ended, or is being ended."""
    status: str = ""
    """Whom or what the job waits for; "" if it moves."""
    rounds: tuple[RoundReport, ...] = ()
    """The rounds that are over."""
    returns: tuple[TaskReturn, ...] = ()
    """Tasks that came back alone."""


def build_snapshot(
    view: JobView, facts: RunFacts, findings: Sequence[Finding], taken_at: str
) -> Snapshot:
    """Return the snapshot; ``taken_at`` is the time of ``view`` as ISO 8601."""
    ranks = rank_states(view)
    links, working = link_states(view)
    shown = order_findings(findings)
    return Snapshot(
        taken_at=taken_at,
        run=_run_state(view, facts, ranks),
        ranks=ranks,
        hosts=host_states(view, ranks),
        links=links,
        links_working=working,
        servers=server_states(view),
        findings=shown,
        findings_left_out=len(findings) - len(shown),
    )


def order_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings as they are shown: active ones before resolved ones, errors first, then the newest
    first."""
    newest_first = sorted(findings, key=lambda f: f.at, reverse=True)
    ordered = sorted(
        newest_first, key=lambda f: (f.over is not None, _SEVERITIES.index(f.severity))
    )
    return tuple(ordered[:MAX_FINDINGS])


def point_of(snapshot: Snapshot) -> Point:
    """Return the point of the job's course that a snapshot gives."""
    run = snapshot.run
    return Point(
        elapsed_s=round(run.elapsed_s, 1),
        step=run.step,
        step_s=run.step_s,
        step_longest_s=run.step_longest_s,
        steps_per_s=run.steps_per_s,
        waiting=run.waiting,
        loss=run.loss,
        cpu=round(sum(h.cpu for h in snapshot.hosts), 3),
        memory_nbytes=sum(h.memory_nbytes for h in snapshot.hosts),
    )


def _run_state(view: JobView, facts: RunFacts, ranks: tuple[RankState, ...]) -> RunState:
    members = shown_members(view)
    training = [r for r in ranks if r.step and not r.end] or [r for r in ranks if r.step]
    steps = [r.step for r in training]
    losses = [r.loss for r in ranks if r.loss is not None]
    slowest, longest_s = _slowest_member(members)
    phase = _phase(view, facts)
    return RunState(
        job=facts.job,
        phase=phase,
        command=facts.command,
        allaboard=facts.allaboard,
        framework=next((m.framework for m in members if m.framework), ""),
        world_size=_world_size(view, members),
        ready=sum(m.alive and m.phase >= Phase.JOINED for m in members),
        host=facts.host,
        leads=facts.leads,
        run_dir=facts.run_dir,
        started=facts.started,
        elapsed_s=round(facts.elapsed_s, 3),
        outcome=str(facts.outcome) if facts.outcome is not None else "",
        reason=facts.reason,
        status="" if phase is RunPhase.ENDED else facts.status,
        silent_s=round(max(0.0, view.now - view.progress_at), 3) if view.alive else 0.0,
        stall_after_s=round(view.stall_after, 3),
        step=min(steps, default=0),
        step_highest=max(steps, default=0),
        step_s=_median(r.step_s for r in training if r.step_s is not None),
        step_longest_s=longest_s,
        slowest=slowest,
        steps_per_s=_median(r.steps_per_s for r in training) or 0.0,
        loss=_median(losses),
        waiting=_median(r.waiting for r in training if not r.end) or 0.0,
        input=_median(r.input for r in training if not r.end) or 0.0,
        round=sum(r.again for r in facts.rounds),
        restarts=_restarts(facts),
    )


def _phase(view: JobView, facts: RunFacts) -> RunPhase:
    if facts.outcome is not None or view.ended:
        return RunPhase.ENDED
    if view.ending:
        return RunPhase.ENDING
    if view.rolled_at is None and any(
        m.in_user_code or m.phase is Phase.ARRIVED for m in view.alive
    ):
        return RunPhase.STARTING
    return RunPhase.STALLED if view.stalled else RunPhase.RUNNING


def _world_size(view: JobView, members: Sequence[Member]) -> int:
    declared = max((m.declared.world_size for m in members if m.declared is not None), default=0)
    return max(declared, view.launched, len(members))


def _slowest_member(members: Iterable[Member]) -> tuple[str, float | None]:
    """Return the member that takes longest for its own part of a step, if it stands out, and the duration of
    the longest own part."""
    own_times = [(m.pace.own_time, m.who.name) for m in members if m.alive and m.pace.steps]
    if not own_times:
        return "", None
    longest, name = max(own_times)
    median_s = median(t for t, _ in own_times)
    stands_out = len(own_times) > 1 and longest > SLOWER_THAN_MEDIAN * median_s
    return name if stands_out else "", round(longest, 6)


def _restarts(facts: RunFacts) -> tuple[RestartState, ...]:
    rounds = tuple(
        RestartState(what=f"round {r.number + 1}", reason=r.decision, seconds=r.delay or None)
        for r in facts.rounds
        if r.again
    )
    tasks = tuple(
        RestartState(what=t.task, reason=f"{t.cause}: {t.decision}", seconds=t.seconds)
        for t in facts.returns
    )
    return rounds + tasks


def _median(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return round(median(numbers), 6) if numbers else None
