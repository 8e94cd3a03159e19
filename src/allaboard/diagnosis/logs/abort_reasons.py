"""Processes that end themselves by SIGABRT once they have said why: the signal is not the cause. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from allaboard.facts import Finding, Heard

_SIGNAL = "killed by SIGABRT"
_REASONS = ("EXIT005", "JOIN004", "JOIN005", "LOG001", "LOG002", "LOG010")
"""What JAX's client, XLA's rendezvous and NCCL's watchdog end their process for."""


def told_why(found: Sequence[Finding], heard: Iterable[Heard]) -> list[Finding]:
    """Without the ends by SIGABRT of which the process has told the reason in the same file."""
    said = {(s.place.file, s.rank) for h in heard if h.rule in _REASONS for s in h.speakers}
    return [f for f in found if not (_SIGNAL in f.summary and _by_those(f, said))]


def _by_those(one: Finding, said: set[tuple[str, int]]) -> bool:
    places = {e.origin for e in one.evidence}
    ranks = {w.rank for w in one.who}
    return any(
        rank in ranks and any(p.startswith(f"{file}:") for p in places) for file, rank in said
    )
