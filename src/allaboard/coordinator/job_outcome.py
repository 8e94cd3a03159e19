"""What the ends of a job's workers come to. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import NamedTuple

from allaboard.analysis.failures.failure_causality import because_of, order_failures
from allaboard.facts import Exit, Finding, Interruption, JobView, Outcome
from allaboard.rules.engine.relations import RelationsOf


class ExitCounts(NamedTuple):
    """How many ended badly, of how many that ended."""

    bad: int
    all: int


def count_exits(found: Iterable[Exit]) -> ExitCounts:
    """Counts these: badly is by a signal, with another code than 0, or where nobody saw how."""
    every = list(found)
    bad = [e for e in every if e.signal is not None or e.code not in (0, None) or e.lost]
    return ExitCounts(len(bad), len(every))


def early_leaver(
    findings: Iterable[Finding], relations_of: RelationsOf, host: str, workers: Container[int]
) -> Finding | None:
    """What was found of a worker of this ``host`` that ended well while other hosts waited for it;
    ``workers`` are the pids of this host's."""
    for found in findings:
        if not relations_of(found.rule).clean_exit:
            continue
        if any(w.host == host and w.pid in workers for w in found.who):
            return found
    return None


def interruption_behind(view: JobView, ended: Outcome | None, bad: int) -> Interruption | None:
    """The interruption of another host because of which the job fell; None where somebody failed by itself,
    or nobody did. ``ended``: as what the job was ended, None where it was not; ``bad``: how many workers
    ended badly."""
    if not view.interruptions or ended not in (None, Outcome.FAILED, Outcome.INTERRUPTED):
        return None
    found = order_failures(view)
    if found.root_failures or not (bad or ended):
        return None
    return because_of(view, found.consequences[0]) if found.consequences else view.interruptions[0]
