"""Which incident people are told about now, and which they were told about already. Pure: ``now`` is an
argument.

An incident is one fault, however many findings, ranks, rounds and snapshots show it. It is told once when it
has settled, and once when the job goes on. Only errors are incidents.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from allaboard.facts import Finding, RunPhase, Severity, Snapshot, Stage

SETTLE_S = 5.0
"""Seconds that an incident collects findings before it is told: one fault often has several."""
REPEAT_AFTER_S = 3600.0
"""Seconds in which the same fault, come again, is not told again."""
MAX_FINDINGS = 20
"""Findings that an incident keeps."""

FindingKey = tuple[str, tuple[str, ...]]


class NoticeKind(StrEnum):
    """What is told."""

    FAULT = "fault"
    """A fault is there."""
    RESOLVED = "resolved"
    """The job goes on."""
    ENDED = "ended"
    """The run has ended other than well, or while a fault that was told stood."""


class Notice(NamedTuple):
    """Something to tell people now."""

    kind: NoticeKind
    """What it is."""
    findings: tuple[Finding, ...]
    """The findings of the fault, the first one first; () if the run ended without one."""
    snapshot: Snapshot
    """The job at that time."""
    times: int = 1
    """How often the fault has come in this run."""
    fault_snapshot: Snapshot | None = None
    """The job when the fault was last seen: its processes may be others by now, or have ended; None if that
    is ``snapshot``."""


class _Incident:
    def __init__(self, steps: int, settles_at: float) -> None:
        self.steps = steps
        """Steps of the job when it began."""
        self.settles_at = settles_at
        """Until when it collects findings (s); then it is told."""
        self.snapshot: Snapshot | None = None
        """The job when one of its findings last stood."""
        self.findings: dict[FindingKey, Finding] = {}
        """All findings, the first one first."""
        self.untold: set[FindingKey] = set()
        """Those that are to be told once it has settled."""
        self.announced: set[FindingKey] = set()
        """Those that were told."""


class _Repeats(NamedTuple):
    told_at: float
    """When it was last told (s)."""
    times: int
    """How often it has come."""


def finding_key(finding: Finding) -> FindingKey:
    """Return what makes two findings the same fault: the rule and the members by name, in any round and under
    any pid."""
    return finding.rule, tuple(sorted(f"{w.name} {w.rank}" for w in finding.who))


class IncidentBook:
    """The incidents of one run."""

    def __init__(self) -> None:
        self._open: list[_Incident] = []
        self._repeats: dict[FindingKey, _Repeats] = {}
        self._has_ended = False

    def take_in(self, snapshot: Snapshot, now: float) -> list[Notice]:
        """Return what is to be told after this snapshot; ``now`` in seconds."""
        if self._has_ended:
            return []
        faults = [f for f in snapshot.findings if _is_fault(f)]
        if snapshot.run.outcome:
            self._has_ended = True
            return self._end(snapshot, faults)
        for finding in faults:
            self._collect(finding, snapshot, now)
        notices = [
            self._tell(incident, snapshot, now)
            for incident in self._open
            if incident.untold and now >= incident.settles_at
        ]
        standing = {finding_key(f) for f in faults}
        over = [i for i in self._open if _goes_on(i, standing, snapshot)]
        self._open = [i for i in self._open if i not in over]
        # What was over before anybody could have looked, and what was told before, is told to nobody.
        announced = tuple(f for i in over for key, f in i.findings.items() if key in i.announced)
        if announced:
            notices.append(Notice(NoticeKind.RESOLVED, announced, snapshot))
        return notices

    def _collect(self, finding: Finding, snapshot: Snapshot, now: float) -> None:
        key = finding_key(finding)
        for incident in self._open:
            if key in incident.findings:
                incident.findings[key] = finding
                incident.snapshot = snapshot
                return
        newest = self._open[-1] if self._open else None
        if newest is None or now >= newest.settles_at or len(newest.findings) >= MAX_FINDINGS:
            newest = _Incident(snapshot.run.step, now + SETTLE_S)
            self._open.append(newest)
        newest.findings[key] = finding
        newest.snapshot = snapshot
        earlier = self._repeats.get(key, _Repeats(float("-inf"), 0))
        self._repeats[key] = earlier._replace(times=earlier.times + 1)
        if now >= earlier.told_at + REPEAT_AFTER_S:
            newest.untold.add(key)

    def _tell(self, incident: _Incident, snapshot: Snapshot, now: float) -> Notice:
        keys = [key for key in incident.findings if key in incident.untold]
        for key in keys:
            self._repeats[key] = self._repeats[key]._replace(told_at=now)
        incident.announced |= incident.untold
        incident.untold = set()
        times = max(self._repeats[key].times for key in keys)
        findings = tuple(incident.findings[key] for key in keys)
        return Notice(NoticeKind.FAULT, findings, snapshot, times, incident.snapshot)

    def _end(self, snapshot: Snapshot, faults: list[Finding]) -> list[Notice]:
        announced = tuple(
            f for i in self._open for key, f in i.findings.items() if key in i.announced
        )
        outcome = snapshot.run.outcome
        if outcome == "completed":
            return [Notice(NoticeKind.RESOLVED, announced, snapshot)] if announced else []
        if outcome == "interrupted" and not announced:
            return []  # whoever ended it knows
        findings = {key: f for i in self._open for key, f in i.findings.items()}
        findings |= {finding_key(f): f for f in faults}
        fault_snapshot = self._open[-1].snapshot if self._open else None
        shown = tuple(findings.values())[:MAX_FINDINGS]
        return [Notice(NoticeKind.ENDED, shown, snapshot, fault_snapshot=fault_snapshot)]


def _is_fault(finding: Finding) -> bool:
    """Return True for an error that stands. What the text of the script or the environment gives reason to
    expect is none yet."""
    is_error = finding.severity is Severity.ERROR and finding.stage is not Stage.CONFIG
    return is_error and finding.over is None


def _goes_on(incident: _Incident, standing: set[FindingKey], snapshot: Snapshot) -> bool:
    """Return True if none of the incident's findings stands and the job makes steps again: other ones than
    before, or those of a new round."""
    run = snapshot.run
    moves = run.phase is RunPhase.RUNNING and run.steps_per_s > 0
    return not standing & incident.findings.keys() and moves and run.step != incident.steps
