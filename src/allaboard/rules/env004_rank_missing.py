"""One member that the others wait for has no configuration among those given.

## Why it matters
All members wait for each task of the cluster, or each rank below WORLD_SIZE. One that is never started holds
up all of them: forever in TensorFlow, for half an hour in PyTorch.

## What to do
Write the missing member's configuration and start it, or take it out of the cluster. This is reported only
if more than half of the members were given: fewer are a sample, not the job.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.analysis.configuration.config_comparison import example_pasted_configs
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Pasted, Severity, Who

_MAX_COMPARED = 10_000


def check(facts: Pasted) -> Iterator[Claim]:
    awaited: dict[tuple[str, int], str] = {}
    given_members: set[tuple[str, int]] = set()
    for name, spec in facts.specs:
        index = spec.index.integer if spec.index is not None else None
        if spec.job is not None and index is not None:
            given_members.add((spec.job.text, index))
            for job, number, _ in list(spec.tasks())[:_MAX_COMPARED]:
                awaited.setdefault((job, number), name)
        elif spec.number("rank") is not None and spec.number("world_size") is not None:
            given_members.add(("rank", spec.number("rank") or 0))
            for number in range(min(spec.number("world_size") or 0, _MAX_COMPARED)):
                awaited.setdefault(("rank", number), name)
    missing = sorted(awaited.keys() - given_members)
    if not missing or 2 * len(missing) >= len(awaited):
        return
    names = ", ".join(f"{job} {i}" for job, i in missing[:5]) + (", …" if len(missing) > 5 else "")
    origin = awaited[missing[0]]
    example_spec = dict(facts.specs)[origin]
    where = next(
        (v.origin.editor_place for j, i, v in example_spec.tasks() if (j, i) == missing[0]), None
    )
    size = example_spec.values.get("world_size")
    if where is None and size is not None:
        where = size.origin.editor_place
    yield Claim(
        summary=f"{names} {'has' if len(missing) == 1 else 'have'} no configuration among the "
        f"{len(facts.specs)} given",
        who=tuple(Who(job=job if job != "rank" else "worker", index=i) for job, i in missing[:5]),
        evidence=(Evidence(f"{len(awaited)} members expected", origin),),
        fix=_fix(missing[0], origin),
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=where,
    )


def _fix(missing: tuple[str, int], origin: str) -> str:
    job, index = missing
    if job == "rank":
        return f"start one more: RANK={index}, and the others' WORLD_SIZE, MASTER_ADDR, MASTER_PORT"
    return f"allaboard spec --as tf_config {shlex.quote(origin)}   # then set the index to {index}"


_WORKERS = ["a:1", "b:1", "c:1", "d:1"]

RULE = Rule(
    reads=Pasted,
    check=check,
    fires_on={
        "the configuration of worker 2 of four is missing": (
            example_pasted_configs([_WORKERS] * 3, (0, 1, 3)),
            "worker 2 has no configuration among the 3 given",
        )
    },
    silent_on={
        "the configurations of all four workers are given": example_pasted_configs(
            [_WORKERS] * 4, (0, 1, 2, 3)
        ),
        "only two of four configurations are given": example_pasted_configs([_WORKERS] * 2, (0, 1)),
    },
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
