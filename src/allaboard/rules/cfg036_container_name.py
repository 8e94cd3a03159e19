"""An operator's job has no container of the name that the operator looks for.

## Why it matters
The training operator sets TF_CONFIG, RANK and the rest in the container that is called `tensorflow` in a
TFJob and `pytorch` in a PyTorchJob. Under another name the job is refused, or its containers start without
any of these variables and train alone.

## What to do
Rename the training container as shown.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Claim, ManifestFacts, Origin, Role, Value, Workload

_CONTAINER_NAMES = {"TFJob": "tensorflow", "PyTorchJob": "pytorch"}


def check(facts: ManifestFacts) -> Iterator[Claim]:
    for workload in facts.workloads:
        expected_name = _CONTAINER_NAMES.get(workload.kind)
        if expected_name is None:
            continue
        for role in workload.roles:
            names = [c.text for c in role.containers]
            if not names or expected_name in names:
                continue
            first_container = role.containers[0]
            yield Claim(
                summary=f"{workload.kind} {workload.name} {role.name} has no container "
                f"{expected_name!r}: it has {', '.join(names)}",
                evidence=(first_container.evidence,),
                fix=f"- name: {expected_name}",
                where=first_container.origin.editor_place,
            )


def _facts(kind: str, name: str) -> ManifestFacts:
    origin = Origin(key="containers.name", file="job.yaml", line=12, column=19)
    role = Role(name="Worker", replicas=Value("2"), containers=(Value(name, origin),))
    return ManifestFacts(workloads=(Workload(kind=kind, name="mnist", roles=(role,)),))


RULE = Rule(
    reads=ManifestFacts,
    check=check,
    fires_on={
        "a PyTorchJob whose container is called `trainer`": (
            _facts("PyTorchJob", "trainer"),
            "PyTorchJob mnist Worker has no container 'pytorch': it has trainer",
        )
    },
    silent_on={
        "a TFJob whose container is called `tensorflow`": _facts("TFJob", "tensorflow"),
        "a plain Job, whose container may have any name": _facts("Job", "trainer"),
    },
)
