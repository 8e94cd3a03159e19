"""The task's index in TF_CONFIG is a string.

## Why it matters
TensorFlow converts it, so training starts. But a script that compares it itself
(`tf_config["task"]["index"] == 0`) finds it unequal on every worker: then no worker is the chief, and none
saves.

## What to do
Write the number without quotes.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import own
from allaboard.contracts import Rule
from allaboard.facts import (
    Claim,
    ConfigFacts,
    Evidence,
    Origin,
    Problem,
    Severity,
    Stage,
    facts_of,
)


def check(facts: ConfigFacts) -> Iterator[Claim]:
    for problem in facts.problems:
        if problem.kind == "tf_config.index":
            yield Claim(
                summary=f"TF_CONFIG's {problem.said}; TensorFlow converts it, scripts often do not",
                who=own(facts.spec),
                evidence=(Evidence(problem.observed, str(problem.origin)),),
                fix=problem.correction,
                severity=Severity.INFO,
                where=problem.origin.place,
            )


_TEXT = Problem(
    kind="tf_config.index",
    said='task.index is the string "0"',
    observed='"0"',
    correction='"index": 0',
    origin=Origin(variable="TF_CONFIG", key="task.index", line=1, column=70),
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ConfigFacts,
    check=check,
    fires_on={
        "a string": (
            facts_of(problems=(_TEXT,)),
            'TF_CONFIG\'s task.index is the string "0"; TensorFlow converts it, scripts often do '
            "not",
        )
    },
    silent_on={"a number": facts_of(cluster={"worker": ["a:1"]}, task=("worker", 0))},
    since="0.1",
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
