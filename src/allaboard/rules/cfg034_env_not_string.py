"""A manifest gives a number or a boolean to an environment variable or a command.

## Why it matters
Kubernetes accepts only strings there and refuses the document (`cannot unmarshal number into … of type
string`). Inside an operator's custom resource, the operator may refuse it later, where nobody looks.

## What to do
Put the value in quotes.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.configuration.config_problems import told
from allaboard.contracts import Rule
from allaboard.facts import Claim, ManifestFacts, Origin, Problem, Stage


def check(facts: ManifestFacts) -> Iterator[Claim]:
    yield from told(facts.problems, "manifest.env")


_NUMBER = Problem(
    kind="manifest.env",
    said="the value of MASTER_PORT is a number; Kubernetes accepts only strings here",
    observed="value: 29500",
    correction='value: "29500"',
    origin=Origin(variable="MASTER_PORT", file="job.yaml", line=19, column=20),
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ManifestFacts,
    check=check,
    fires_on={
        "a number": (
            ManifestFacts(problems=(_NUMBER,)),
            "the value of MASTER_PORT is a number; Kubernetes accepts only strings here",
        )
    },
    silent_on={"nothing": ManifestFacts()},
    since="0.1",
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
