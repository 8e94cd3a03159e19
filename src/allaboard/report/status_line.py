"""One line that says how a job is doing: whether it moves, how fast, who holds it up, since when. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from allaboard.facts import Finding, ResourceState, RunPhase, Severity, Snapshot
from allaboard.report.plain_text import clean

NEARLY_FULL = 0.85
"""Share of a limit from which a resource is in the line."""
MIN_SHOWN_WAITING = 0.05
"""Share of waiting for other members below which it is not in the line."""
SEPARATOR = " · "


class _Part(NamedTuple):
    """A part of the line."""

    text: str
    rank: int
    """Its importance: in a narrow terminal those with the highest number are left out first."""


def status_line(snapshot: Snapshot, width: int = 0, countdown: str = "") -> str:
    """Return the line, of at most ``width`` characters; less important parts are left out; 0: all.

    ``countdown``: what is done, and when, if the job goes on hanging, as "ends in 4:30"; "" if nothing is.
    """
    run = snapshot.run
    elapsed = _Part(format_elapsed(run.elapsed_s), 1)
    if run.phase is RunPhase.STALLED:
        parts = [_Part(_hang_text(snapshot), 0), *_countdown(countdown), elapsed]
    elif run.phase is RunPhase.ENDING:
        parts = [_Part(f"ending: {clean(run.reason)}" if run.reason else "ending", 0), elapsed]
    elif run.phase is RunPhase.STARTING or not run.step:
        # Whom the job waits for is said with the time for which it does.
        times = [] if run.status else [elapsed]
        text = clean(run.status) or _start_text(snapshot)
        parts = [_Part(text, 0), *_finding_count(snapshot), *times]
    else:
        parts = [*_training_parts(snapshot), elapsed]
    return _fit(parts, width)


def format_elapsed(seconds: float) -> str:
    """Return a duration as people write it: "0:07", "12:30", "1:02:33"."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def _training_parts(snapshot: Snapshot) -> Iterable[_Part]:
    run = snapshot.run
    yield _Part(f"step {run.step:,}", 0)
    if run.steps_per_s:
        yield _Part(_rate(run.steps_per_s), 2)
    if loss := _loss(snapshot):
        yield _Part(f"loss {loss}", 3)
    yield _Part(f"{run.ready}/{run.world_size} ranks", 2)
    if run.status:
        yield _Part(clean(run.status), 1)
    if run.slowest:
        yield _Part(f"slowest {clean(run.slowest)}{_lag(snapshot)}", 2)
    if run.waiting >= MIN_SHOWN_WAITING:
        yield _Part(f"{run.waiting:.0%} waiting", 4)
    if run.input >= MIN_SHOWN_WAITING:
        yield _Part(f"{run.input:.0%} on input", 5)
    for text in _nearly_full(snapshot):
        yield _Part(text, 2)
    yield from _finding_count(snapshot)


def _lag(snapshot: Snapshot) -> str:
    """Return by how much the slowest member's own part of a step is longer than the usual one: " (+35%)"."""
    run = snapshot.run
    if not (run.step_s and run.step_longest_s):
        return ""
    usual_s = run.step_s * (1 - run.waiting)
    share = run.step_longest_s / usual_s - 1 if usual_s > 0 else 0.0
    return f" (+{share:.0%})" if share >= MIN_SHOWN_WAITING else ""


def _hang_text(snapshot: Snapshot) -> str:
    """Return who stands where, from the most important finding that still holds; else what is known."""
    seconds = f"{snapshot.run.silent_s:.0f} s"
    open_findings = [
        f for f in snapshot.findings if f.over is None and f.severity is not Severity.INFO
    ]
    if cause := next((f for f in open_findings if _may_be_cause(f, snapshot)), None):
        return f"hanging for {seconds}: {clean(cause.summary)} ({cause.rule})"
    if snapshot.run.status:
        return clean(snapshot.run.status)
    error = next((f for f in open_findings if f.severity is Severity.ERROR), None)
    known = f"{clean(error.summary)} ({error.rule})" if error is not None else ""
    return f"no progress for {seconds}" + (
        f"{SEPARATOR}{known}" if known else ": looking for the cause"
    )


def _may_be_cause(finding: Finding, snapshot: Snapshot) -> bool:
    """Return True if the finding is no older than the standstill: with an older one the job went on."""
    if not (finding.at and snapshot.taken_at):
        return True
    silence = timedelta(seconds=snapshot.run.silent_s)
    return datetime.fromisoformat(finding.at) >= datetime.fromisoformat(snapshot.taken_at) - silence


def _countdown(text: str) -> list[_Part]:
    return [_Part(text, 0)] if text else []


def _start_text(snapshot: Snapshot) -> str:
    run = snapshot.run
    if run.ready < run.world_size and run.phase is not RunPhase.STARTING:
        return f"{run.ready} of {run.world_size} ranks run, no step was seen"
    if run.ready < run.world_size:
        return f"starting: {run.ready} of {run.world_size} ranks have joined"
    return f"{run.ready}/{run.world_size} ranks have joined, no step yet"


def _rate(steps_per_s: float) -> str:
    """Return steps per second, or seconds per step where a step takes longer."""
    if steps_per_s >= 1:
        return f"{steps_per_s:.3g} steps/s"
    return f"{1 / steps_per_s:.3g} s/step"


def _loss(snapshot: Snapshot) -> str:
    """Return the loss; one that is no finite number comes first."""
    broken = next((r.loss_text for r in snapshot.ranks if r.loss_text), "")
    return broken or (f"{snapshot.run.loss:.4g}" if snapshot.run.loss is not None else "")


def _nearly_full(snapshot: Snapshot) -> Iterable[str]:
    """Return what is nearly used up: the fullest resource of a kind over all hosts, and the fullest GPU."""
    fullest: dict[str, tuple[float, str]] = {}
    for host in snapshot.hosts:
        shares = [(_share(resource), resource.name) for resource in host.resources]
        shares += [
            (gpu.memory_nbytes / gpu.memory_limit_nbytes, "GPU memory")
            for gpu in host.gpus
            if gpu.memory_limit_nbytes
        ]
        for share, name in shares:
            if share >= NEARLY_FULL and share > fullest.get(name, (0.0, ""))[0]:
                fullest[name] = share, host.host
    several = len(snapshot.hosts) > 1
    for name, (share, host_name) in sorted(fullest.items()):
        location = f" on {clean(host_name)}" if several else ""
        yield f"{clean(name)} {share:.0%} full{location}"


def _share(resource: ResourceState) -> float:
    return resource.used / resource.limit if resource.limit > 0 else 0.0


def _finding_count(snapshot: Snapshot) -> list[_Part]:
    active = [f for f in snapshot.findings if f.over is None]
    counts = [(severity, sum(f.severity is severity for f in active)) for severity in Severity]
    texts = [
        f"{n} {severity}{'s' if n > 1 and severity != 'info' else ''}"
        for severity, n in counts
        if n
    ]
    return [_Part(", ".join(texts), 1)] if texts else []


def _fit(parts: list[_Part], width: int) -> str:
    """Leave parts out, the least important first and of equal ones the last, until the line fits."""
    while True:
        line = SEPARATOR.join(part.text for part in parts)
        droppable = [part for part in parts if part.rank > 0]
        if not width or len(line) <= width or not droppable:
            break
        parts.remove(max(reversed(droppable), key=lambda part: part.rank))
    return line if not width or len(line) <= width else f"{line[: width - 1]}…"
