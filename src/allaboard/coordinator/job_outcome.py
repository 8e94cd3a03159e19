"""What the exits of a job's workers come to. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import NamedTuple

from allaboard.analysis.failures.failure_causality import interruption_behind, order_failures
from allaboard.facts import Exit, Finding, Interruption, JobView, Outcome
from allaboard.rules.engine.relations import RelationsOf


class ExitCounts(NamedTuple):
    """Numbers of exits of the workers of a job."""

    bad: int
    """Exits by a signal, with another code than 0, or that nobody saw."""
    all: int
    """All exits."""


def count_exits(exits: Iterable[Exit]) -> ExitCounts:
    """Return how many exits there are, and how many of them are bad."""
    all_exits = list(exits)
    bad = [e for e in all_exits if e.signal is not None or e.code not in (0, None) or e.lost]
    return ExitCounts(len(bad), len(all_exits))


def early_leaver(
    findings: Iterable[Finding], relations_of: RelationsOf, host: str, workers: Container[int]
) -> Finding | None:
    """Return the finding on a worker of this ``host`` that exited with code 0 while other hosts waited for
    it.

    None if there is none. ``workers`` are the pids of this host's workers.
    """
    for finding in findings:
        if not relations_of(finding.rule).clean_exit:
            continue
        if any(w.host == host and w.pid in workers for w in finding.who):
            return finding
    return None


def interruption_behind_end(
    view: JobView, ending: Outcome | None, bad_exits: int
) -> Interruption | None:
    """Return the interruption of another host that made the job fall.

    None if a member failed by itself, or none failed. ``ending`` is the outcome with which the job is being
    ended, None if it is not.
    """
    if not view.interruptions or ending not in (None, Outcome.FAILED, Outcome.INTERRUPTED):
        return None
    order = order_failures(view)
    if order.root_failures or not (bad_exits or ending):
        return None
    if not order.consequences:
        return view.interruptions[0]
    return interruption_behind(view, order.consequences[0])
