"""Two members claim one identity: the same task, or the same rank.

## Why it matters
Identity is checked first, or nothing else can be trusted. Two tasks with one index: the second
cannot bind, or is never reached, and the index that nobody has is awaited for ever. Two processes
with one rank: PyTorch names the *absent* rank in its timeout, never the double one.

## What to do
Give one of the two the identity that is free.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.pasted import pasted
from allaboard.facts import Claim, ClusterSpec, Pasted, Stage, Value, Who


def check(facts: Pasted) -> Iterator[Claim]:
    first: dict[tuple[str, int], tuple[str, Value]] = {}
    known = {_identity(spec) for _, spec in facts.specs}
    for name, spec in facts.specs:
        who, value = _identity(spec), _value(spec)
        if who is None or value is None:
            continue
        if who not in first:
            first[who] = (name, value)
            continue
        other_name, other = first[who]
        free = _free(spec, who[0], known)
        yield Claim(
            summary=f"{other_name} and {name} are both {who[0]} {who[1]}",
            who=(Who(job=who[0], index=who[1]),),
            evidence=(other.evidence, value.evidence),
            fix=f"give one of the two the index {free}" if free >= 0 else "leave one of them out",
            where=value.origin.place,
        )


def _value(spec: ClusterSpec) -> Value | None:
    return spec.index if spec.index is not None else spec.values.get("rank")


def _identity(spec: ClusterSpec) -> tuple[str, int] | None:
    value = _value(spec)
    if value is None or value.integer is None:
        return None
    if spec.index is not None:
        return (spec.job.text, value.integer) if spec.job is not None else None
    return "rank", value.integer


def _free(spec: ClusterSpec, job: str, known: set[tuple[str, int] | None]) -> int:
    count = len(spec.cluster.get(job, ())) or spec.number("world_size") or 0
    return next((i for i in range(min(count, 10_000)) if (job, i) not in known), -1)


_WORKERS = ["a:1", "b:1", "c:1"]

RULE = Rule(
    stage=Stage.CLUSTER,
    reads=Pasted,
    check=check,
    fires_on={
        "two workers 1": (
            pasted([_WORKERS] * 3, (0, 1, 1)),
            "node1.json and node2.json are both worker 1",
        )
    },
    silent_on={"one each": pasted([_WORKERS] * 3, (0, 1, 2))},
    since="0.1",
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
