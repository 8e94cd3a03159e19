"""Findings that are no errors because the logs say that the job went on, or that its user ended it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from allaboard.analysis.failures.failure_causality import has_failed, was_interrupted
from allaboard.analysis.log_ends.post_traceback_output import (
    LOGGED_DOUBT,
    OTHER_THREAD_DOUBT,
    WENT_ON_DOUBT,
)
from allaboard.diagnosis.logs.run_readers import LogRecord
from allaboard.facts import Evidence, Finding, Member, Severity
from allaboard.rules.engine.relations import RelationsOf

COUNTER_EVIDENCE = "what speaks against it"
"""Origin of evidence against a finding."""
_DOUBTS = (WENT_ON_DOUBT, LOGGED_DOUBT, OTHER_THREAD_DOUBT)
"""Begin the counter-evidence against an end that was none, unless something else reports it."""


def downgrade_severities(
    findings: Sequence[Finding],
    members: Iterable[Member],
    record: LogRecord,
    relations_of: RelationsOf,
) -> list[Finding]:
    """Return the findings with the severity that all the evidence leaves them."""
    files = set(record.names)
    downgraded = [_downgrade_past(f, record.good_endings, files) for f in findings]
    failed_members = [m for m in members if has_failed(m)]
    was_interrupted_by_user = bool(failed_members) and all(map(was_interrupted, failed_members))
    if was_interrupted_by_user:
        downgraded = [
            _with_severity(f, Severity.INFO) if relations_of(f.rule).interruption else f
            for f in downgraded
        ]
    certain_errors = [f for f in downgraded if f.severity is Severity.ERROR and not _was_caught(f)]
    if certain_errors or record.job_failed:
        return downgraded
    return [_with_severity(f, Severity.WARNING) if _was_caught(f) else f for f in downgraded]


def _was_caught(finding: Finding) -> bool:
    return any(
        e.origin == COUNTER_EVIDENCE and e.observed.startswith(_DOUBTS) for e in finding.evidence
    )


def _downgrade_past(finding: Finding, good_endings: Mapping[str, str], names: set[str]) -> Finding:
    """Return the finding as a warning if its file ends well: it is of an earlier run, or was mended."""
    places = [origin for e in finding.evidence for origin in e.origin.split(", ")]
    files = {origin.rpartition(":")[0] for origin in places} & names
    if not files or files - good_endings.keys() or finding.severity is not Severity.ERROR:
        return finding
    final_words = good_endings[min(files)]
    counter_evidence = Evidence(
        f"the log goes on after it, and ends in {final_words!r}", COUNTER_EVIDENCE
    )
    extended = msgspec.structs.replace(finding, evidence=(*finding.evidence, counter_evidence))
    return _with_severity(extended, Severity.WARNING)


def _with_severity(finding: Finding, severity: Severity) -> Finding:
    return msgspec.structs.replace(finding, severity=severity)
