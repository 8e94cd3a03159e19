"""TF_CONFIG is JSON, but not in the form that TensorFlow reads.

## Why it matters
A missing `cluster` does not fail: the worker silently trains alone, with exit code 0. A missing `task`, a
job that is a string instead of a list, or a key that appears twice (JSON readers keep the last one) fail
late, with messages that do not name TF_CONFIG, or make the others hang.

## What to do
Bring the part named into the form shown: `cluster` maps each job to a list of `host:port`, and `task` holds
this process's `type` and `index`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import own
from allaboard.contracts import Rule
from allaboard.facts import Claim, ConfigFacts, Evidence, Origin, Problem, Stage, facts_of


def check(facts: ConfigFacts) -> Iterator[Claim]:
    for problem in facts.problems:
        if problem.kind == "tf_config.shape":
            name = problem.origin.variable or "TF_CONFIG"
            yield Claim(
                summary=f"{name} {problem.said}",
                who=own(facts.spec),
                evidence=(Evidence(problem.observed, str(problem.origin)),),
                fix=problem.correction,
                where=problem.origin.place,
            )


_STRING = Problem(
    kind="tf_config.shape",
    said="cluster.worker is one string, not a list",
    observed="host0:2222",
    correction='"worker": ["host0:2222"]',
    origin=Origin(variable="TF_CONFIG", key="cluster.worker", line=1, column=24),
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ConfigFacts,
    check=check,
    fires_on={
        "one string": (
            facts_of(problems=(_STRING,)),
            "TF_CONFIG cluster.worker is one string, not a list",
        )
    },
    silent_on={"one worker": facts_of(cluster={"worker": ["a:2222"]}, task=("worker", 0))},
    since="0.1",
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
