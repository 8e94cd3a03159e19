"""Processes that end themselves by SIGABRT once they have logged the reason: the signal is not the cause.
Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from allaboard.facts import Finding, Heard, Severity
from allaboard.rules.engine.relations import RelationsOf

_SIGNAL = "killed by SIGABRT"
_LAUNCHERS_WORD = "aborted (SIGABRT)"
"""In the launcher's line on a child that aborted, which gives no reason."""


def drop_explained_aborts(
    findings: Sequence[Finding], messages: Iterable[Heard], relations_of: RelationsOf
) -> list[Finding]:
    """Return the findings without ends by SIGABRT of processes that logged the reason in the same file.

    JAX's client, XLA's rendezvous and NCCL's watchdog end their process so.
    """
    reasons = (h for h in messages if relations_of(h.rule).ends_by_abort)
    speakers = {(s.place.file, s.rank) for h in reasons for s in h.speakers}
    return [f for f in findings if not (_SIGNAL in f.summary and _is_by_speaker(f, speakers))]


def drop_following_aborts(
    message_findings: Sequence[Finding], findings: Iterable[Finding]
) -> list[Finding]:
    """Return the findings without a launcher's line on a child that aborted, if anything else failed.

    NCCL's watchdog and gloo abort a process that waits for one that has failed, and an assertion or an
    uncaught C++ exception is reported by itself.
    """
    aborts = [f for f in message_findings if _LAUNCHERS_WORD in f.summary]
    others = [f for f in message_findings if f not in aborts]
    has_cause = any(f.severity is Severity.ERROR for f in (*others, *findings))
    return others if has_cause else list(message_findings)


def _is_by_speaker(finding: Finding, speakers: set[tuple[str, int]]) -> bool:
    places = {e.origin for e in finding.evidence}
    ranks = {w.rank for w in finding.who}
    # Where a launcher's file does not tell who wrote the reason, it is one of those that it lists.
    return any(
        (rank in ranks or rank < 0) and any(p.startswith(f"{file}:") for p in places)
        for file, rank in speakers
    )
