"""Problems that the reader of Kubernetes manifests found: each rule reports one kind of them."""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.configuration.config_problems import problem_claims
from allaboard.contracts import Rule
from allaboard.facts import Claim, ManifestFacts, Origin, Problem


def _rule(page: str, case: str, example: Problem) -> Rule[ManifestFacts]:
    """Return the rule that reports problems of the kind of this example."""

    def check(facts: ManifestFacts) -> Iterator[Claim]:
        yield from problem_claims(facts.problems, example.kind)

    return Rule(
        page=page,
        reads=ManifestFacts,
        check=check,
        fires_on={case: (ManifestFacts(problems=(example,)), example.message)},
        silent_on={"a manifest without such a problem": ManifestFacts()},
    )


RULES = {
    "cfg034_env_not_string": _rule(
        page="""A manifest gives a number or a boolean to an environment variable or a command.

## Why it matters
Kubernetes accepts only strings there and refuses the document (`cannot unmarshal number into … of type
string`). Inside an operator's custom resource, the operator may refuse it later, where the reason is easily
missed.

## What to do
Put the value in quotes.
""",
        case="an environment variable with a number as its value",
        example=Problem(
            kind="manifest.env",
            message="the value of MASTER_PORT is a number; Kubernetes accepts only strings here",
            observed="value: 29500",
            correction='value: "29500"',
            origin=Origin(variable="MASTER_PORT", file="job.yaml", line=19, column=20),
        ),
    ),
    "cfg039_key_twice": _rule(
        page="""A manifest has a key twice in one mapping.

## Why it matters
YAML forbids it, and most readers silently take the last one: an edited `replicas` or `env` list has
no effect, because another one follows further down.

## What to do
Merge the two. Strict readers refuse the document: `kubectl apply --validate=strict`.
""",
        case="the key `replicas` appears twice in one mapping",
        example=Problem(
            kind="manifest.twice",
            message="the key 'replicas' appears twice in one mapping: the first one is ignored",
            observed="replicas: again",
            correction="one 'replicas', with what both say",
            origin=Origin(key="replicas", file="job.yaml", line=9, column=7),
        ),
    ),
    "cfg043_replica_type": _rule(
        page="""An operator's job has a group of replicas that the operator does not know.

## Why it matters
The training operator knows Chief, Master, PS, Worker and Evaluator in a TFJob, Master and Worker in a
PyTorchJob, Launcher and Worker in an MPIJob. If a job has another one (`Workers`, `ParameterServer`), the
cluster accepts it and the operator then refuses it: no pod comes, and the reason appears only in the job's
events.

## What to do
Write the name as shown. The operator ignores upper and lower case.
""",
        case="replicas called `Workers` instead of `Worker`",
        example=Problem(
            kind="manifest.role",
            message="TFJob mnist has replicas called 'Workers'; "
            "its operator knows Chief, Master, PS, Worker, Evaluator",
            observed="Workers:",
            correction="Worker:",
            origin=Origin(key="Workers", file="job.yaml", line=7, column=5),
        ),
    ),
}
