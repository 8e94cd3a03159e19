"""In one snapshot of the stacks, all ranks wait in the same collective, and a rank between them is missing.

## Why it matters
Ranks that all stand in one collective wait for somebody. If nearly all ranks were dumped, and one was not,
that one is the first to look at: it has ended, or could not be dumped.

## What to do
Look at that rank's log and at its host, or add its dump: it shows where that rank is.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.stacks.stack_classifier import Spot
from allaboard.analysis.stacks.stack_collectives import StackCollective, find_stack_collective
from allaboard.analysis.stacks.unranked_processes import FIRST_UNRANKED_NUMBER
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Dumps, Evidence, Severity, Who
from allaboard.facts.rank_sets import format_ranks, name_ranks
from allaboard.facts.samples import REDUCE, USER, sample_stack

MIN_DUMPS_PER_MISSING_RANK = 3
"""Dumps for each missing rank; with fewer, only some ranks were meant to be dumped."""


def check(dumps: Dumps) -> Iterator[Claim]:
    ranks = sorted(dumps.stacks)
    if len(ranks) < 2 or ranks[-1] >= FIRST_UNRANKED_NUMBER:
        return
    missing = sorted(set(range(ranks[-1])) - set(ranks))
    if not missing or len(ranks) < MIN_DUMPS_PER_MISSING_RANK * len(missing):
        return
    collectives = [find_stack_collective(dumps.stacks[rank].frames) for rank in ranks]
    example = collectives[0]
    if example is None or any(not _is_same(c, example) for c in collectives):
        return
    plural = len(missing) > 1
    site_clause = f" at {example.user}" if example.user is not None else ""
    subject = name_ranks(missing)
    yield Claim(
        summary=f"{subject} {'were' if plural else 'was'} not dumped, and ranks {format_ranks(ranks)} all "
        f"wait in {example}{site_clause}",
        who=tuple(Who(index=r, rank=r) for r in missing[:64]),
        evidence=(
            Evidence(f"ranks {format_ranks(ranks)}: {example}{site_clause}", "stacks"),
            Evidence("that it is not in there as well", "what this does not prove"),
        ),
        fix=f"look at {subject} first: the log, the host, or py-spy dump --pid PID while it hangs",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _is_same(collective: StackCollective | None, example: StackCollective) -> bool:
    return (
        collective is not None
        and collective.spot is Spot.COLLECTIVE
        and (collective.call, collective.own) == (example.call, example.own)
    )


_WAITS, _COMPUTES = sample_stack(REDUCE, USER), sample_stack(USER)
RULE = Rule(
    reads=Dumps,
    check=check,
    fires_on={
        "ranks 0, 2 and 3 wait, and rank 1 was not dumped": (
            Dumps(stacks=dict.fromkeys((0, 2, 3), _WAITS)),
            "rank 1 was not dumped, and ranks 0,2-3 all wait in all_reduce at train.py:41 in train",
        )
    },
    silent_on={
        "all four ranks were dumped": Dumps(stacks=dict.fromkeys(range(4), _WAITS)),
        "several ranks were not dumped": Dumps(stacks=dict.fromkeys((0, 2, 5), _WAITS)),
        "one of the dumped ranks is in its own code": Dumps(
            stacks={0: _WAITS, 2: _COMPUTES, 3: _WAITS}
        ),
        "all dumped ranks are in their own code": Dumps(stacks=dict.fromkeys((0, 2, 3), _COMPUTES)),
    },
    unstaged="it is read after the fact: its recordings are in tests/diagnosis/collectives",
)
