"""In one snapshot of the stacks, some ranks wait for the others, which are somewhere else.

## Why it matters
Ranks that wait in a collective or in init wait for those that are not in it. One snapshot shows where those
are; it cannot show whether they move.

If a dump does not show its rank, its process is named by its pid or its file. Then it is not known whether it
belongs to the same job, nor how many processes that has: it is only the first place to look at. Workers of a
DataLoader or a pool, launchers and other programs are listed separately, and not blamed.

## What to do
Take the dumps again some seconds later. A rank that is still at the same place is stuck there; one that has
moved is only slow. `allaboard diagnose PID...` takes several snapshots by itself. Names like `rank0.txt` give
the rank of a dump.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from allaboard.analysis.stacks.outliers import Outliers, find_outliers
from allaboard.analysis.stacks.stack_classifier import Spot
from allaboard.analysis.stacks.stack_collectives import (
    find_different_collectives,
    find_stack_collective,
)
from allaboard.analysis.stacks.stack_groups import StackGroup, StackGroups
from allaboard.analysis.stacks.unranked_processes import FIRST_UNRANKED_NUMBER, describe_processes
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Dumps, Evidence, Severity, Who
from allaboard.facts.samples import REDUCE, USER, sample_stack

MAX_SHOWN_PLACES = 3
"""Places of outliers that the summary names."""


def check(dumps: Dumps) -> Iterator[Claim]:
    groups = StackGroups()
    for number, stack in sorted(dumps.stacks.items()):
        groups.add(number, stack.frames)
    outlier_groups = find_outliers(groups)
    if find_different_collectives(groups) is not None:
        return  # all wait, and DUMP004 tells in which calls
    if not outlier_groups.outliers or not outlier_groups.waiting:
        return
    numbers = [n for g in (*outlier_groups.outliers, *outlier_groups.waiting) for n in g.ranks]
    unranked = [dumps.unnamed.get(n, Who(index=-1)) for n in numbers if n >= FIRST_UNRANKED_NUMBER]
    outlier_numbers = sorted(n for g in outlier_groups.outliers for n in g.ranks)
    evidence = [
        Evidence(
            f"{describe_processes(g.ranks, dumps.unnamed)}: {g.frames[0]}{_caller_clause(g)}",
            "stacks",
        )
        for g in (*outlier_groups.outliers[:2], outlier_groups.waiting[0])
    ]
    if unranked:
        which = "ranks these are" if len(unranked) > 1 else "rank this is"
        observed = f"the dumps do not say which {which} or how many there should be"
        evidence[2:2] = [Evidence(observed, "stacks")]
    yield Claim(
        summary=_summarize(outlier_groups, dumps),
        who=tuple(dumps.unnamed.get(n) or Who(index=n, rank=n) for n in outlier_numbers[:64]),
        evidence=tuple(evidence),
        fix=_next_step(
            unranked,
            len(unranked) < len(numbers),
            describe_processes(outlier_numbers, dumps.unnamed),
            outlier_groups.outliers[0].spot,
        ),
        severity=Severity.WARNING,
        certainty=Certainty.UNKNOWN if unranked else Certainty.LIKELY,
    )


def _summarize(outlier_groups: Outliers, dumps: Dumps) -> str:
    waiting = [n for g in outlier_groups.waiting for n in g.ranks]
    first_group, *other_groups = outlier_groups.outliers
    where = "somewhere else" if outlier_groups.are_elsewhere else "in another place"
    parts = [
        f"{describe_processes(waiting, dumps.unnamed)} {'wait' if len(waiting) > 1 else 'waits'} "
        f"{_describe_wait(outlier_groups.waiting[0])}",
        f"{describe_processes(first_group.ranks, dumps.unnamed)} "
        f"{'are' if len(first_group.ranks) > 1 else 'is'} {where}: {_describe_place(first_group)}",
        *(
            f"{describe_processes(g.ranks, dumps.unnamed)}: {_describe_place(g)}"
            for g in other_groups[: MAX_SHOWN_PLACES - 1]
        ),
    ]
    places_left = len(other_groups[MAX_SHOWN_PLACES - 1 :])
    return "; ".join(
        [*parts, *([f"and others at {places_left} more places"] if places_left else [])]
    )


def _next_step(unranked: Sequence[Who], some_ranked: bool, outliers: str, spot: Spot) -> str:
    """Return what to do next; a live process can still give its rank."""
    if not unranked and spot is Spot.DATA:
        return (
            f"py-spy dump --pid PID   # of {outliers} again, and of each of its children: the workers of its "
            "loader; num_workers=0 shows which batch it is"
        )
    if not unranked:
        return f"py-spy dump --pid PID   # of {outliers}, again: still at the same place, it is stuck there"
    if hosts := {w.host for w in unranked if w.host}:
        where = ", ".join(sorted(hosts)[:8]) + (", ..." if len(hosts) > 8 else "")
        return (
            f"while it hangs, on each of {where}: allaboard diagnose; it reads the ranks and takes "
            "new stacks"
        )
    if all(w.pid for w in unranked):
        pids = " ".join(str(w.pid) for w in unranked[:8]) + (" ..." if len(unranked) > 8 else "")
        more = ", and the pids of the ranks" if some_ranked else ""
        return f"while it hangs: allaboard diagnose {pids}{more}; it reads their ranks and takes new stacks"
    return "take the dumps again, in files named rank0.txt, rank1.txt: a rank at the same place is stuck"


def _describe_place(group: StackGroup) -> str:
    return f"{group.spot} at {group.user}" if group.user is not None else str(group.spot)


def _describe_wait(group: StackGroup) -> str:
    collective = find_stack_collective(group.frames)
    call = str(collective) if collective is not None else group.frames[0].function
    return f"{group.spot} ({call})" if call not in str(group.spot) else str(group.spot)


def _caller_clause(group: StackGroup) -> str:
    return f", called at {group.user}" if group.user not in (None, group.frames[0]) else ""


_IN_COLLECTIVE, _IN_OWN_CODE = sample_stack(REDUCE, USER), sample_stack(USER)
_PIDS = {FIRST_UNRANKED_NUMBER + n: Who(job="process", index=-1, pid=4242 + n) for n in range(3)}
RULE = Rule(
    reads=Dumps,
    check=check,
    fires_on={
        "one rank is in its own code, and the others wait in a collective": (
            Dumps(stacks={0: _IN_COLLECTIVE, 1: _IN_OWN_CODE, 2: _IN_COLLECTIVE}),
            "ranks 0,2 wait in a collective (all_reduce); rank 1 is somewhere else: "
            "in its own code at train.py:41 in train",
        ),
        "dumps that do not show the ranks of their processes": (
            Dumps(
                stacks=dict(
                    zip(_PIDS, (_IN_OWN_CODE, _IN_COLLECTIVE, _IN_COLLECTIVE), strict=True)
                ),
                unnamed=_PIDS,
            ),
            "pids 4243, 4244 (ranks unknown) wait in a collective (all_reduce); pid 4242 (rank unknown) is "
            "somewhere else: in its own code at train.py:41 in train",
        ),
    },
    silent_on={
        "all ranks wait in a collective": Dumps(stacks=dict.fromkeys(range(3), _IN_COLLECTIVE)),
        "all ranks are in their own code": Dumps(stacks=dict.fromkeys(range(3), _IN_OWN_CODE)),
        "the dump of a single process": Dumps(stacks={0: _IN_OWN_CODE}),
    },
    unstaged="it is read after the fact: its recordings of real runs are in tests/readers/samples",
)
