"""Some members list the same tasks in another order.

## Why it matters
A task's number is its place in the list. Two members that order it differently talk to the wrong peer: with
TensorFlow all of them hang, and the one that says anything blames an innocent worker.

## What to do
Copy the majority's list to the member named; only the order differs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from allaboard.analysis.configuration.config_comparison import (
    example_pasted_configs,
    find_majority_value,
)
from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Claim, ClusterSpec, Evidence, Pasted
from allaboard.facts.address import canonical_address


def check(facts: Pasted) -> Iterator[Claim]:
    compared = find_majority_value(facts, _listed_tasks)
    if compared is None:
        return
    lists, model, usual_list = compared
    for name, spec in facts.specs:
        tasks = lists.get(name)
        if tasks is None or tasks == usual_list or sorted(tasks) != sorted(usual_list):
            continue
        position = next(i for i, (a, b) in enumerate(zip(tasks, usual_list, strict=True)) if a != b)
        job, index, value = sorted(spec.tasks(), key=lambda t: t[0])[position]
        usual_cluster = {
            j: [v.text for v in t] for j, t in dict(facts.specs)[model].cluster.items()
        }
        yield Claim(
            summary=f"{name} lists the same tasks in another order: its {job} {index} is {value.text}",
            who=own_member(spec),
            evidence=(
                value.evidence,
                Evidence(
                    f"{job} {index} is {usual_list[position][1]}", f"{model} and the majority"
                ),
            ),
            fix=f'"cluster": {json.dumps(usual_cluster)[:2000]}',
            where=value.origin.editor_place,
        )


def _listed_tasks(spec: ClusterSpec) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(
        ((job, canonical_address(v.text)) for job, _, v in spec.tasks()), key=lambda t: t[0]
    ))  # fmt: skip


RULE = Rule(
    reads=Pasted,
    check=check,
    fires_on={
        "one of three members lists the workers in another order": (
            example_pasted_configs(
                [["a:1", "b:1", "c:1"], ["a:1", "b:1", "c:1"], ["a:1", "c:1", "b:1"]]
            ),
            "node2.json lists the same tasks in another order: its worker 1 is c:1",
        )
    },
    silent_on={
        "both members list the workers in the same order": example_pasted_configs(
            [["a:1", "b:1"], ["a:1", "b:1"]]
        ),
        "the two members list different workers": example_pasted_configs(
            [["a:1", "b:1"], ["a:1", "c:1"]]
        ),
    },
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
