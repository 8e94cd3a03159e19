"""A pod is addressed by a name that no pod of its workload has.

## Why it matters
Pods of an indexed Job and of a StatefulSet are called NAME-0, NAME-1, …, and that name resolves
only as NAME-0.SERVICE, where SERVICE is the pod template's `subdomain` or the set's
`serviceName`. A rank 0 that is called otherwise is never found.

## What to do
Use the name shown; a Job's template needs `subdomain:` and `completionMode: Indexed` for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Claim, ManifestFacts, Origin, Role, Stage, Value, Workload
from allaboard.formats.address import parse

_VARIABLES = ("MASTER_ADDR", "JAX_COORDINATOR_ADDRESS", "PET_MASTER_ADDR", "PET_RDZV_ENDPOINT")


def check(facts: ManifestFacts) -> Iterator[Claim]:
    services = {s.name for s in facts.services}
    for workload in facts.workloads:
        if workload.kind not in ("Job", "StatefulSet"):
            continue
        for role in workload.roles:
            for name in _VARIABLES:
                value = role.env.get(name)
                if value is not None:
                    yield from _judged(workload, role, value, services)


def _judged(workload: Workload, role: Role, value: Value, services: set[str]) -> Iterator[Claim]:
    host = parse(value.text).host
    pod, _, rest = host.partition(".")
    match = re.fullmatch(re.escape(workload.name) + r"-(\d+)", pod)
    if match is None or pod in services or not workload.name:
        return
    domain = workload.service if workload.kind == "StatefulSet" else role.subdomain
    port = f":{parse(value.text).port}" if parse(value.text).port else ""
    said = right = ""
    count = role.replicas.integer
    if workload.kind == "Job" and not workload.indexed:
        said = "the Job is not indexed: its pods have random names"
        right = "completionMode: Indexed"
    elif domain is None:
        field = "serviceName" if workload.kind == "StatefulSet" else "subdomain"
        said = f"its pods have no {field}: no name of theirs resolves"
        right = f"{field}: {rest.partition('.')[0] or workload.name}"
    elif rest.partition(".")[0] != domain.text:
        said = f"the pods' names end in .{domain.text}"
        right = f"{value.origin.variable}={pod}.{domain.text}{port}"
    elif count is not None and int(match.group(1)) >= count:
        said = f"its pods are {workload.name}-0 to {workload.name}-{count - 1}"
        right = f"{value.origin.variable}={workload.name}-0.{domain.text}{port}"
    if said:
        yield Claim(
            summary=f"{value.origin.variable or 'the address'} is {value.text}, and {said}",
            evidence=(value.evidence, Value(workload.name, workload.origin).evidence),
            fix=right,
            where=value.origin.place,
        )


def _facts(address: str, subdomain: str = "train", indexed: bool = True) -> ManifestFacts:
    at = Origin(variable="MASTER_ADDR", file="job.yaml", line=21, column=20)
    role = Role(
        name="",
        replicas=Value("2"),
        env={"MASTER_ADDR": Value(address, at)},
        subdomain=Value(subdomain) if subdomain else None,
    )
    workload = Workload(kind="Job", name="mnist", roles=(role,), indexed=indexed)
    return ManifestFacts(workloads=(workload,))


RULE = Rule(
    stage=Stage.CONFIG,
    reads=ManifestFacts,
    check=check,
    fires_on={
        "no subdomain": (
            _facts("mnist-0", subdomain=""),
            "MASTER_ADDR is mnist-0, and its pods have no subdomain: no name of theirs resolves",
        ),
        "another subdomain": (
            _facts("mnist-0.svc"),
            "MASTER_ADDR is mnist-0.svc, and the pods' names end in .train",
        ),
        "not indexed": (
            _facts("mnist-0.train", indexed=False),
            "MASTER_ADDR is mnist-0.train, and the Job is not indexed: its pods have random names",
        ),
    },
    silent_on={
        "pod and service": _facts("mnist-0.train.default.svc.cluster.local"),
        "a service of its own": _facts("master"),
    },
    since="0.1",
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
