"""An operator's job has a group of replicas that the operator does not know.

## Why it matters
The training operator knows Chief, Master, PS, Worker and Evaluator in a TFJob, Master and Worker in a
PyTorchJob, Launcher and Worker in an MPIJob. If a job has another one (`Workers`, `ParameterServer`), the
cluster accepts it and the operator then refuses it: no pod comes, and the reason appears only in the job's
events.

## What to do
Write the name as shown. The operator ignores upper and lower case.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.configuration.config_problems import told
from allaboard.contracts import Rule
from allaboard.facts import Claim, ManifestFacts, Origin, Problem, Stage


def check(facts: ManifestFacts) -> Iterator[Claim]:
    yield from told(facts.problems, "manifest.role")


_PLURAL = Problem(
    kind="manifest.role",
    said="TFJob mnist has replicas called 'Workers'; its operator knows Chief, Master, PS, Worker, Evaluator",
    observed="Workers:",
    correction="Worker:",
    origin=Origin(key="Workers", file="job.yaml", line=7, column=5),
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ManifestFacts,
    check=check,
    fires_on={"a plural": (ManifestFacts(problems=(_PLURAL,)), _PLURAL.said)},
    silent_on={"nothing": ManifestFacts()},
    since="0.1",
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
