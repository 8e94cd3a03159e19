"""The job as a whole in a few lines: what every face shows first. Pure."""

from __future__ import annotations

from allaboard.faces.watch.figures import (
    format_duration,
    format_rate,
    format_share,
    format_step_time,
)
from allaboard.facts import Activity, Finding, RankState, RunPhase, Severity, Snapshot
from allaboard.feed.lane_choice import TROUBLED
from allaboard.report.plain_text import clean
from allaboard.report.servers import format_bytes

MAX_AWAITED = 3
"""Awaited ranks that are named."""
FULL_SHARE = 0.9
"""Share of a host's memory or disk from which it is named."""


def is_well(snapshot: Snapshot) -> bool:
    """Return True if nothing is wrong: no error is open, and the job neither stands still nor has failed."""
    run = snapshot.run
    if run.phase is RunPhase.STALLED or (run.outcome and run.outcome != "completed"):
        return False
    return not any(f.severity is Severity.ERROR for f in active_findings(snapshot))


def active_findings(snapshot: Snapshot) -> list[Finding]:
    """Return the findings that are not resolved."""
    return [f for f in snapshot.findings if f.over is None]


def title(snapshot: Snapshot) -> str:
    """Return what runs: ``torch · 4 ranks on 1 host · python train.py``."""
    run = snapshot.run
    ranks = f"{run.world_size} rank{'s' if run.world_size != 1 else ''}"
    hosts = len(snapshot.hosts)
    where = f" on {hosts} host{'s' if hosts != 1 else ''}" if hosts else ""
    partial = "" if run.leads else f" (only those of {run.host}: another host leads)"
    parts = [run.framework or "framework not known yet", f"{ranks}{where}{partial}"]
    return clean(" · ".join([*parts, _short_command(run.command) or run.job]))


def _short_command(command: tuple[str, ...]) -> str:
    """Return the command without the folders of its program and scripts, which would fill the line."""
    return " ".join(
        argument.rpartition("/")[2] or argument
        if number == 0 or argument.endswith(".py")
        else argument
        for number, argument in enumerate(command)
    )


def headline(snapshot: Snapshot) -> str:
    """Return whether it moves: ``running · step 412 · 18.5 steps/s · waiting 4% · 3:05 min``."""
    run = snapshot.run
    parts = [run.outcome or str(run.phase)]
    if run.phase is RunPhase.STALLED:
        parts = [f"stalled for {format_duration(run.silent_s)}"]
    if run.ready < run.world_size and run.phase is RunPhase.STARTING:
        parts.append(f"{run.ready}/{run.world_size} joined")
    if run.step_highest:
        span = f"{run.step}" if run.step == run.step_highest else f"{run.step}-{run.step_highest}"
        parts.append(f"step {span}")
    if run.phase is not RunPhase.ENDED:
        if run.steps_per_s:
            parts.append(f"{format_rate(run.steps_per_s)} steps/s")
        if run.step_s is not None:
            parts.append(f"{format_step_time(run.step_s)} a step")
        if run.loss is not None:
            parts.append(f"loss {run.loss:.4g}")
        if run.step_highest:
            parts.append(f"waiting {format_share(run.waiting)}")
        if run.input >= 0.05:
            parts.append(f"input {format_share(run.input)}")
    if run.round:
        parts.append(f"round {run.round}")
    parts.append(format_duration(run.elapsed_s))
    return " · ".join(parts)


def concerns(snapshot: Snapshot) -> list[str]:
    """Return what deserves a look besides the findings, the most urgent first."""
    run = snapshot.run
    lines = []
    if run.outcome and run.reason:
        lines += [f"{run.outcome}: {run.reason}"] if run.reason != run.outcome else []
    elif run.reason:
        lines.append(run.reason)
    if run.status:
        lines.append(run.status)
    lines += [_trouble(r) for r in snapshot.ranks if r.activity in TROUBLED][:MAX_AWAITED]
    awaited = sorted(
        (r for r in snapshot.ranks if r.awaited_by and r.activity not in TROUBLED),
        key=lambda r: -r.awaited_by,
    )
    if run.phase in (RunPhase.STALLED, RunPhase.RUNNING) and any(
        r.activity is Activity.WAITING for r in snapshot.ranks
    ):
        lines += [_awaited(r) for r in awaited[:MAX_AWAITED]]
    if run.slowest and run.phase is RunPhase.RUNNING:
        lines.append(
            f"{run.slowest} is the slowest: {format_step_time(run.step_longest_s)} of its own a step, the "
            f"median step takes {format_step_time(run.step_s)}"
        )
    lines += _full_resources(snapshot)
    lines += _last_restart(snapshot)
    return [clean(line) for line in lines]


def _last_restart(snapshot: Snapshot) -> list[str]:
    """Return why the workers, or a task, were last started again: the findings of a round end with it."""
    restarts = snapshot.run.restarts
    if not restarts:
        return []
    newest = restarts[-1]
    earlier = f" ({len(restarts) - 1} more before)" if len(restarts) > 1 else ""
    return [f"started again, {newest.what}: {newest.reason}{earlier}"]


def place_of(rank: RankState) -> str:
    """Return ``train.py:41 in train``; "" if it is not known."""
    if not rank.file:
        return ""
    name = rank.file.replace("\\", "/").rpartition("/")[2]
    return clean(
        f"{name}:{rank.line} in {rank.function}" if rank.function else f"{name}:{rank.line}"
    )


def wait_of(rank: RankState) -> str:
    """Return ``worker 1 (all_reduce 12 s)``: for whom a rank waits, and in what; "" for nothing."""
    if rank.end:
        return clean(rank.end)
    if not rank.operation or rank.activity is Activity.SERVING:
        return f"{rank.awaited_by} wait for it" if rank.awaited_by else ""
    operation = f"{rank.operation} {format_duration(rank.operation_s)}"
    names = ", ".join(rank.waits_for[:2])
    more = rank.waits_for_count - min(2, len(rank.waits_for))
    if not names:
        return clean(operation)
    return clean(f"{names}{f' and {more} more' if more else ''} ({operation})")


def _trouble(rank: RankState) -> str:
    end = f" ({rank.end})" if rank.end else ""
    location = f" at {place_of(rank)}" if place_of(rank) else ""
    return f"{rank.name} on {rank.host}: {rank.activity}{end}{location}"


def _awaited(rank: RankState) -> str:
    number = f"{rank.awaited_by} rank{'s' if rank.awaited_by != 1 else ''}"
    verb = "wait" if rank.awaited_by != 1 else "waits"
    location = f" at {place_of(rank)}" if place_of(rank) else ""
    doing = f" in {rank.operation}" if rank.operation else ""
    return f"{number} {verb} for {rank.name} ({rank.activity}{doing}{location})"


def _full_resources(snapshot: Snapshot) -> list[str]:
    return [
        f"{host.host}: {resource.name} is {format_share(resource.used / resource.limit)} full "
        f"({format_bytes(resource.used)} of {format_bytes(resource.limit)})"
        for host in snapshot.hosts
        for resource in host.resources
        if resource.limit and resource.used / resource.limit >= FULL_SHARE
    ]
