"""In one look at the stacks, some ranks wait for the others and some are somewhere else.

## Why it matters
Ranks that wait in a collective or in init wait for those that are not there. One look shows where those
are; it cannot show whether they move.

## What to do
Take the dumps again some seconds later. A rank that is still at the same place is stuck there; one that is
not is only slow. `allaboard diagnose PID...` looks several times by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Dumps, Evidence, Severity, Stage, Who
from allaboard.facts.samples import REDUCE, USER, stack
from allaboard.stacks.groups import Group, Groups
from allaboard.stacks.outliers import outliers
from allaboard.stacks.ranks import told


def check(dumps: Dumps) -> Iterator[Claim]:
    groups = Groups()
    for rank, one in sorted(dumps.stacks.items()):
        groups.add(rank, one.frames)
    found = outliers(groups)
    if not found.odd or not found.waiting:
        return
    waiting = [r for g in found.waiting for r in g.ranks]
    odd = sorted(r for g in found.odd for r in g.ranks)
    first, most = found.odd[0], found.waiting[0]
    at = f" at {first.user}" if first.user is not None else ""
    where = "somewhere else" if found.elsewhere else "in another place"
    yield Claim(
        summary=f"{_ranks(waiting)} {'wait' if len(waiting) > 1 else 'waits'} "
        f"{_what(most)}; {_ranks(odd)} {'are' if len(odd) > 1 else 'is'} {where}: {first.spot}{at}",
        who=tuple(Who(index=r, rank=r) for r in odd[:64]),
        evidence=tuple(
            Evidence(f"{_ranks(g.ranks)}: {g.frames[0]}{_user(g)}", "stacks")
            for g in (*found.odd[:2], most)
        ),
        fix="take the dumps again: a rank that is still at the same place is stuck there",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _ranks(ranks: Iterable[int]) -> str:
    known = list(ranks)
    return f"{'rank' if len(known) == 1 else 'ranks'} {told(known)}"


def _what(group: Group) -> str:
    return f"{group.spot} ({group.frames[0].function})"


def _user(group: Group) -> str:
    return f", called at {group.user}" if group.user not in (None, group.frames[0]) else ""


_WAITS, _OWN = stack(REDUCE, USER), stack(USER)
RULE = Rule(
    stage=Stage.RUNTIME,
    reads=Dumps,
    check=check,
    fires_on={
        "one is in its own code": (
            Dumps(stacks={0: _WAITS, 1: _OWN, 2: _WAITS}),
            "ranks 0,2 wait in a collective (all_reduce); rank 1 is somewhere else: "
            "in its own code at train.py:41 in train",
        ),
    },
    silent_on={
        "all wait": Dumps(stacks=dict.fromkeys(range(3), _WAITS)),
        "all compute": Dumps(stacks=dict.fromkeys(range(3), _OWN)),
        "one process alone": Dumps(stacks={0: _OWN}),
    },
    since="0.1",
    unstaged="it is read after the fact: its recordings of real runs are in tests/witnesses/samples",
)
