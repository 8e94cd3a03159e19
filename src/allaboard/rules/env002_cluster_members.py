"""Some members list other tasks, or another number of them.

## Why it matters
TensorFlow fails on groups of another size (`joining a group with size3, but that group has size 2`), and
hangs if one address differs. In PyTorch with another WORLD_SIZE, the smaller group starts, and stops in its
first collective.

## What to do
Give the member named the cluster that the majority has. With two members there is no majority: find out
which of them is right.
"""

from __future__ import annotations

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
    compared = find_majority_value(facts, _task_set)
    if compared is None:
        return
    sets, model, usual_set = compared
    for name, spec in facts.specs:
        tasks = sets.get(name)
        if tasks is None or tasks == usual_set:
            continue
        extra, absent = sorted(tasks - usual_set), sorted(usual_set - tasks)
        differences = []
        if len(tasks) != len(usual_set):
            differences.append(f"{len(tasks)} tasks, {model} {len(usual_set)}")
        else:
            differences.append(f"{extra[0][0]} at {extra[0][1]}, {model} at {absent[0][1]}")
        differing_value = next(
            (v for j, _, v in spec.tasks() if (j, canonical_address(v.text)) in tasks - usual_set),
            None,
        )
        value = differing_value or next(v for _, _, v in spec.tasks())
        observed = ", ".join(f"{j} {a}" for j, a in (extra or absent)[:3])
        yield Claim(
            summary=f"{name} lists {differences[0]}",
            who=own_member(spec),
            evidence=(
                value.evidence,
                Evidence(f"{'only there' if extra else 'absent there'}: {observed}", name),
            ),
            fix=f"take the cluster of {model} for {name}",
            where=value.origin.editor_place,
        )


def _task_set(spec: ClusterSpec) -> frozenset[tuple[str, str]]:
    return frozenset((job, canonical_address(v.text)) for job, _, v in spec.tasks())


RULE = Rule(
    reads=Pasted,
    check=check,
    fires_on={
        "one of three members lists two workers instead of three": (
            example_pasted_configs([["a:1", "b:1", "c:1"], ["a:1", "b:1"], ["a:1", "b:1", "c:1"]]),
            "node1.json lists 2 tasks, node0.json 3",
        ),
        "one of three members lists a worker at another port": (
            example_pasted_configs([["a:1", "b:1"], ["a:1", "b:1"], ["a:1", "b:2"]]),
            "node2.json lists worker at b:2, node0.json at b:1",
        ),
    },
    silent_on={
        "addresses that differ only in upper and lower case": example_pasted_configs(
            [["a:1", "b:1"], ["A:1", "b:1"]]
        )
    },
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
