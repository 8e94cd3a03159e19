"""Findings of which the logs say that the job went on, or that its user ended it: no errors. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from allaboard.analysis.failures.failure_causality import has_failed, was_interrupted
from allaboard.analysis.failures.post_traceback_output import (
    LOGGED_DOUBT,
    OTHER_THREAD_DOUBT,
    WENT_ON_DOUBT,
)
from allaboard.diagnosis.logs.run_readers import Record
from allaboard.facts import Evidence, Finding, Member, Severity
from allaboard.rules.engine.relations import RelationsOf

AGAINST = "what speaks against it"
_DOUBTS = (WENT_ON_DOUBT, LOGGED_DOUBT, OTHER_THREAD_DOUBT)
"""How what speaks against an end begins, where it was none if nothing else tells of one."""


def eased(
    found: Sequence[Finding], members: Iterable[Member], record: Record, relations_of: RelationsOf
) -> list[Finding]:
    """The findings, with the severity that all that was read leaves them."""
    files = set(record.read)
    told = [_past(f, record.well, files) for f in found]
    ended = [m for m in members if has_failed(m)]
    by_hand = bool(ended) and all(map(was_interrupted, ended))
    if by_hand:
        told = [_with(f, Severity.INFO) if relations_of(f.rule).interruption else f for f in told]
    others = [f for f in told if f.severity is Severity.ERROR and not _caught(f)]
    if others or record.failed:
        return told
    return [_with(f, Severity.WARNING) if _caught(f) else f for f in told]


def _caught(one: Finding) -> bool:
    return any(e.origin == AGAINST and e.observed.startswith(_DOUBTS) for e in one.evidence)


def _past(one: Finding, well: Mapping[str, str], read: set[str]) -> Finding:
    """Of a file that ends well all that it tells is of an earlier run, or was mended by a restart."""
    places = [place for e in one.evidence for place in e.origin.split(", ")]
    files = {place.rpartition(":")[0] for place in places} & read
    if not files or files - well.keys() or one.severity is not Severity.ERROR:
        return one
    last = well[min(files)]
    why = Evidence(f"the log goes on after it, and ends in {last!r}", AGAINST)
    eased = msgspec.structs.replace(one, evidence=(*one.evidence, why))
    return _with(eased, Severity.WARNING)


def _with(one: Finding, severity: Severity) -> Finding:
    return msgspec.structs.replace(one, severity=severity)
