"""Reports of a parent that a process ended, without a reason: what else the logs tell says more.

Ray, DeepSpeed's launcher, vLLM and SGLang see only that a child is gone. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from allaboard.facts import Evidence, Finding, Heard, Severity
from allaboard.rules.engine.relations import RelationsOf, reports_waiting


def without_explained_ends(heard: Sequence[Heard], relations_of: RelationsOf) -> list[Heard]:
    """Return the messages without bare ends of processes that wrote the reason, and without what followed.

    Whoever ended without a word took its peers along: they wait for it, or lose it, and write so. Where
    every process that ended wrote something, or where nobody can tell who wrote it, the words count. Of
    several ends the first is left: it took the others along.
    """
    ends = [h for h in heard if h.bare_end]
    if not ends:
        return list(heard)
    words = [
        h
        for h in heard
        if not h.bare_end and h.severity is Severity.ERROR and not relations_of(h.rule).last_resort
    ]
    writers = {s.pid for h in words for s in h.speakers}
    waits = [h for h in words if reports_waiting(relations_of(h.rule))]
    silent = [h for h in ends if h.pid and h.pid not in writers]
    if not words:
        return [h for h in heard if h not in ends[1:]]
    if silent and len(waits) == len(words) and 0 not in writers:
        return [h for h in heard if h is silent[0] or not (h in ends or h in waits)]
    return [h for h in heard if h not in ends]


def settle_bare_ends(
    message_findings: Sequence[Finding],
    findings: Sequence[Finding],
    heard: Iterable[Heard],
    relations_of: RelationsOf,
) -> tuple[list[Finding], list[Finding]]:
    """Return the findings from messages without bare ends that another one explains, and the other findings
    without members that only lost or awaited who ended so."""
    findings = _without_bare_exits(message_findings, findings, relations_of)
    said = {h.says for h in heard if h.bare_end}
    bare = [f for f in message_findings if f.summary in said]
    others = [f for f in message_findings if f not in bare]
    followed = [f for f in findings if reports_waiting(relations_of(f.rule))]
    causes = [f for f in (*others, *findings) if f not in followed]
    if not bare:
        return list(message_findings), list(findings)
    if any(f.severity is Severity.ERROR for f in causes):
        return others, list(findings)
    return list(message_findings), [f for f in findings if f not in followed]


def _without_bare_exits(
    message_findings: Sequence[Finding], findings: Sequence[Finding], relations_of: RelationsOf
) -> list[Finding]:
    """Return the findings without exit codes of processes in whose file a message says why one failed."""
    files = {
        _file(e)
        for f in message_findings
        if f.severity is Severity.ERROR and not reports_waiting(relations_of(f.rule))
        for e in f.evidence[:1]
    } - {""}
    return [
        f
        for f in findings
        if not (relations_of(f.rule).bare_exit and files & {_file(e) for e in f.evidence})
    ]


def _file(evidence: Evidence) -> str:
    return evidence.origin.rpartition(":")[0]
