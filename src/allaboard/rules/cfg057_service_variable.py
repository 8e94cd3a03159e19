"""A Service of Kubernetes gives the pods of a job a MASTER_PORT that is no port.

## Why it matters
For every Service of its namespace Kubernetes sets variables in each pod, in the manner of old Docker links:
of one that is called `master`, MASTER_PORT is `tcp://10.96.12.7:29500`. PyTorch and others take MASTER_PORT
for a number, and every rank fails at the start: `invalid literal for int() with base 10`. Variables that the
pod, its launcher or its script sets itself count before them.

## What to do
Set MASTER_PORT in the pod's `env`, or `enableServiceLinks: false` in its spec, or call the Service otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import (
    Certainty,
    Claim,
    ManifestFacts,
    Origin,
    Role,
    Service,
    Severity,
    Value,
    Workload,
)

_PORT = "MASTER_PORT"
_JOB_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR")
"""Variables of a job that meets by the environment; one of them is enough."""
_SETS_THE_PORT = re.compile(
    r"torchrun|torch\.distributed|accelerate|deepspeed|horovodrun|MASTER_PORT"
)
"""In a command that sets MASTER_PORT for what it starts."""
_WITHOUT_OPERATOR = ("Pod", "Job", "StatefulSet", "Deployment", "ReplicaSet")
"""Kinds whose pods have no MASTER_PORT but what they set themselves."""


def check(facts: ManifestFacts) -> Iterator[Claim]:
    for service in facts.services:
        if service.name.upper().replace("-", "_") + "_PORT" != _PORT or service.headless:
            continue  # a headless one has no address that could be set
        for workload in facts.workloads:
            if workload.kind not in _WITHOUT_OPERATOR or workload.namespace != service.namespace:
                continue
            role = next((r for r in workload.roles if _gets_the_url(r)), None)
            if role is not None:
                yield _claim(service, workload, role)
                break


def _gets_the_url(role: Role) -> bool:
    return (
        role.service_links
        and _PORT not in role.env
        and _PORT not in role.computed
        and not any(_SETS_THE_PORT.search(word.text) for words in role.commands for word in words)
        and any(name in role.env or name in role.computed for name in _JOB_VARIABLES)
    )


def _claim(service: Service, workload: Workload, role: Role) -> Claim:
    port = service.ports[0].port.text if service.ports else "29500"
    return Claim(
        summary=f"{workload.kind} {workload.name} sets no MASTER_PORT, and gets that of Service "
        f"{service.name}: a URL (tcp://…:{port}), which is no number",
        evidence=(
            Value(service.name, service.origin).evidence,
            Value(workload.name, role.origin).evidence,
        ),
        fix=f"- {{name: {_PORT}, value: '{port}'}}   # in the container's env; or enableServiceLinks: false",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=role.origin.editor_place,
    )


def _facts(
    *names: str,
    kind: str = "Pod",
    service: str = "master",
    command: str = "python train.py",
    links: bool = True,
    headless: bool = False,
) -> ManifestFacts:
    place = Origin(file="job.yaml", line=18, column=3)
    role = Role(
        name="",
        replicas=Value("1"),
        env={n: Value("1", place) for n in names},
        service_links=links,
        commands=(tuple(Value(word, place) for word in command.split()),),
        origin=place,
    )
    workload = Workload(kind=kind, name="trainer-0", roles=(role,), origin=place)
    return ManifestFacts(
        workloads=(workload,),
        services=(
            Service(name=service, headless=headless, origin=Origin(file="job.yaml", line=4)),
        ),
    )


RULE = Rule(
    reads=ManifestFacts,
    check=check,
    fires_on={
        "a Service called master, and a pod that sets MASTER_ADDR alone": (
            _facts("RANK", "WORLD_SIZE", "MASTER_ADDR"),
            "Pod trainer-0 sets no MASTER_PORT, and gets that of Service master: a URL (tcp://…:29500), "
            "which is no number",
        ),
    },
    silent_on={
        "the pod sets MASTER_PORT itself": _facts("RANK", "MASTER_ADDR", "MASTER_PORT"),
        "the pod takes no variables of Services": _facts("RANK", "MASTER_ADDR", links=False),
        "the Service has another name": _facts("RANK", "MASTER_ADDR", service="trainer"),
        "the Service is headless and has no address": _facts("RANK", "MASTER_ADDR", headless=True),
        "torchrun sets MASTER_PORT": _facts("MASTER_ADDR", command="torchrun --nnodes 2 train.py"),
        "an operator sets MASTER_PORT": _facts("NCCL_DEBUG", "RANK", kind="PyTorchJob"),
        "the pod does not train": _facts("LOG_LEVEL"),
    },
)
