"""Findings of flight recorders beside those of the same files' messages: one fact is one finding. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.facts import Finding, Severity
from allaboard.rules.engine.relations import RelationsOf


def without_repeated_facts(
    findings: Sequence[Finding], messages: Sequence[Finding], relations_of: RelationsOf
) -> tuple[list[Finding], list[Finding]]:
    """Return both without what another finding says with more.

    A recorder that names the call in which ranks differ says more than a watchdog or a message of NCCL
    about the same ranks. That a rank has left no record says less than anything that is known of its end.
    """
    remaining = [
        f
        for f in findings
        if not (relations_of(f.rule).reports_silence and _ranks(f) <= _named(findings, messages, f))
    ]
    explaining = [f for f in remaining if relations_of(f.rule).explains and f.evidence]
    return (
        [f for f in remaining if not _is_explained(f, explaining, relations_of)],
        [f for f in messages if not _is_explained(f, explaining, relations_of)],
    )


def _ranks(finding: Finding) -> set[int]:
    return {w.rank for w in finding.who}


def _named(findings: Sequence[Finding], messages: Sequence[Finding], silent: Finding) -> set[int]:
    """Return the ranks of which another finding says how they failed or where they stand."""
    errors = [f for f in (*findings, *messages) if f.severity is Severity.ERROR and f is not silent]
    return {rank for f in errors for rank in _ranks(f)} - {-1}


def _is_explained(
    finding: Finding, explaining: Sequence[Finding], relations_of: RelationsOf
) -> bool:
    """Return True if a finding explains this one, and names all ranks that this one names."""
    return any(
        finding.rule in relations_of(f.rule).explains
        and f is not finding
        and (_ranks(finding) <= _ranks(f) or not _ranks(f))
        for f in explaining
    )
