"""Processes that end themselves by SIGABRT once they have said why: the signal is not the cause. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from allaboard.facts import Finding, Heard
from allaboard.rules.engine.relations import RelationsOf

_SIGNAL = "killed by SIGABRT"


def told_why(
    found: Sequence[Finding], heard: Iterable[Heard], relations_of: RelationsOf
) -> list[Finding]:
    """Return the findings without ends by SIGABRT of processes that logged the reason in the same file.

    JAX's client, XLA's rendezvous and NCCL's watchdog end their process so.
    """
    reasons = (h for h in heard if relations_of(h.rule).ends_by_abort)
    said = {(s.place.file, s.rank) for h in reasons for s in h.speakers}
    return [f for f in found if not (_SIGNAL in f.summary and _by_those(f, said))]


def _by_those(one: Finding, said: set[tuple[str, int]]) -> bool:
    places = {e.origin for e in one.evidence}
    ranks = {w.rank for w in one.who}
    return any(
        rank in ranks and any(p.startswith(f"{file}:") for p in places) for file, rank in said
    )
