"""A pod is addressed by a name that no pod of its workload has.

## Why it matters
Pods of an indexed Job and of a StatefulSet are called NAME-0, NAME-1, …, and that name resolves only as
NAME-0.SERVICE, where SERVICE is the pod template's `subdomain` or the set's `serviceName`. If rank 0's name
is written differently, it is never found. Pods of a Deployment have random names.

## What to do
Use the name shown. A Job's template needs `subdomain:` and `completionMode: Indexed` for it. A JobSet's
pods are called SET-ROLE-JOB-POD, as in `train-workers-0-0.train`; those of Volcano's Job JOB-TASK-NUMBER, as
in `train-master-0.train`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from allaboard.contracts import Rule
from allaboard.facts import OPAQUE, Certainty, Claim, ManifestFacts, Origin, Role, Value, Workload
from allaboard.facts.address import parse_address

_ADDRESS_VARIABLES = (
    "MASTER_ADDR",
    "JAX_COORDINATOR_ADDRESS",
    "PET_MASTER_ADDR",
    "PET_RDZV_ENDPOINT",
)
_ADDRESS_FLAGS = ("master_addr", "rdzv_endpoint", "coordinator_address")
_MIN_SIMILARITY = 0.8
"""Similarity (Ratcliff and Obershelp) from which a name counts as the other one misspelt."""


def check(facts: ManifestFacts) -> Iterator[Claim]:
    service_names = {s.name for s in facts.services}
    workload_names = {w.name for w in facts.workloads}
    for workload in facts.workloads:
        for role in workload.roles:
            for value in _addresses(role):
                if workload.kind == "JobSet":
                    yield from _check_job_set(workload, role, value, service_names)
                elif workload.kind == "VolcanoJob":
                    yield from _check_volcano(workload, role, value)
                elif workload.kind in ("Deployment", "ReplicaSet"):
                    yield from _check_unnumbered(workload, value, service_names)
                elif workload.kind in ("Job", "StatefulSet"):
                    yield from _check_pod(workload, role, value, service_names)
                    yield from _check_spelling(workload_names, workload, role, value)


def _addresses(role: Role) -> Iterator[Value]:
    """Yield the addresses that the role's pods are given, by variable or by flag."""
    for name in _ADDRESS_VARIABLES:
        if name in role.env:
            yield role.env[name]
    for command in role.commands:
        for position, argument in enumerate(command):
            flag, equals, text = argument.text.partition("=")
            if flag.lstrip("-").replace("-", "_") not in _ADDRESS_FLAGS or not flag.startswith("-"):
                continue
            address = (
                text
                if equals
                else command[position + 1].text
                if position + 1 < len(command)
                else ""
            )
            if address and OPAQUE not in address:
                origin = argument.origin
                yield Value(
                    address,
                    Origin(flag=flag, file=origin.file, line=origin.line, column=origin.column),
                )


def _check_job_set(
    workload: Workload, role: Role, value: Value, service_names: set[str]
) -> Iterator[Claim]:
    """Report a name that no pod of the JobSet has; they are ``SET-ROLE-JOB-POD.SUBDOMAIN``."""
    pod, _, domain = parse_address(value.text).host.partition(".")
    named = {
        r.name: match
        for r in workload.roles
        if (match := re.fullmatch(re.escape(f"{workload.name}-{r.name}") + r"-(\d+)-(\d+)", pod))
    }
    subdomain = domain.partition(".")[0]
    if not workload.subdomain or pod in service_names:
        return
    if workload.without_names:
        if named and domain:
            reason = "enableDNSHostnames is false, and no pod of the JobSet has a name"
            yield _claim(workload, value, reason, f"{value.text} with enableDNSHostnames: true")
        return
    if subdomain != workload.subdomain:
        if named and subdomain not in service_names and workload.name:
            yield _claim(
                workload,
                value,
                f"the pods' names end in .{workload.subdomain}",
                f"{pod}.{workload.subdomain}",
            )
        return
    for other_role in workload.roles:
        match = named.get(other_role.name)
        count = other_role.replicas.integer
        if match is not None and (count is None or int(match[2]) < count):
            return
    correct_name = f"{workload.name}-{role.name}-0-0.{workload.subdomain}"
    yield _claim(workload, value, f"the pods are named {correct_name} and so on", correct_name)


def _check_volcano(workload: Workload, role: Role, value: Value) -> Iterator[Claim]:
    """Report a name that no pod of Volcano's Job has; its plugin svc names them ``JOB-TASK-NUMBER.JOB``."""
    pod, _, domain = parse_address(value.text).host.partition(".")
    match = re.fullmatch(re.escape(workload.name) + r"-(\w[\w-]*)-(\d+)", pod)
    if match is None or not workload.name:
        return
    tasks = {r.name: r.replicas.integer for r in workload.roles}
    first_task = next((name for name in tasks if name in ("master", "chief", "leader")), role.name)
    if match[1] not in tasks:
        correct_name = f"{workload.name}-{first_task}-0.{workload.name}"
        yield _claim(workload, value, f"its tasks are {', '.join(tasks)}", correct_name)
    elif not domain:
        yield _claim(
            workload,
            value,
            f"the pods' names resolve only with .{workload.name}, their service",
            f"{pod}.{workload.name}",
        )


def _check_spelling(
    workload_names: Set[str], workload: Workload, role: Role, value: Value
) -> Iterator[Claim]:
    """Report a misspelt pod name under the service of this workload."""
    pod, _, domain_text = parse_address(value.text).host.partition(".")
    domain = workload.service if workload.kind == "StatefulSet" else role.subdomain
    match = re.fullmatch(r"(.+)-\d+", pod)
    if domain is None or match is None or domain_text.partition(".")[0] != domain.text:
        return
    if match[1] in workload_names:
        return
    from difflib import SequenceMatcher  # rarely needed, and slow to import

    similarity = SequenceMatcher(None, match[1], workload.name).ratio()
    if similarity >= _MIN_SIMILARITY:
        correct_name = f"{workload.name}-0.{domain.text}"
        yield _claim(
            workload, value, f"the pods are named {workload.name}-0 and so on", correct_name
        )


def _claim(workload: Workload, value: Value, contradiction: str, correct_name: str) -> Claim:
    port = parse_address(value.text).port
    return Claim(
        summary=f"{value.origin.name or 'the address'} is {value.text}, but {contradiction}",
        evidence=(value.evidence, Value(workload.name, workload.origin).evidence),
        fix=f"{value.origin.name}={correct_name}" + (f":{port}" if port else ""),
        certainty=Certainty.LIKELY,
        where=value.origin.editor_place,
    )


def _check_unnumbered(workload: Workload, value: Value, service_names: set[str]) -> Iterator[Claim]:
    """Report a numbered pod of a workload whose pods have random names."""
    pod, _, domain = parse_address(value.text).host.partition(".")
    match = re.fullmatch(re.escape(workload.name) + r"-\d+", pod)
    if match is None or pod in service_names or not workload.name:
        return
    yield Claim(
        summary=f"{value.origin.name or 'the address'} is {value.text}, but the pods of a {workload.kind} "
        "have random names",
        evidence=(value.evidence, Value(workload.name, workload.origin).evidence),
        fix=f"kind: StatefulSet   # with serviceName: {domain.partition('.')[0] or workload.name}",
        certainty=Certainty.LIKELY,
        where=value.origin.editor_place,
    )


def _check_pod(
    workload: Workload, role: Role, value: Value, service_names: set[str]
) -> Iterator[Claim]:
    host = parse_address(value.text).host
    pod, _, domain_text = host.partition(".")
    match = re.fullmatch(re.escape(workload.name) + r"-(\d+)", pod)
    if match is None or pod in service_names or not workload.name:
        return
    domain = workload.service if workload.kind == "StatefulSet" else role.subdomain
    port = f":{parse_address(value.text).port}" if parse_address(value.text).port else ""
    contradiction = correction = ""
    count = role.replicas.integer
    if workload.kind == "Job" and not workload.indexed:
        contradiction = "the Job is not indexed, so its pods have random names"
        correction = "completionMode: Indexed"
    elif domain is None:
        field = "serviceName" if workload.kind == "StatefulSet" else "subdomain"
        contradiction = f"the pods have no {field}, so their names do not resolve"
        correction = f"{field}: {domain_text.partition('.')[0] or workload.name}"
    elif domain_text.partition(".")[0] != domain.text:
        contradiction = f"the pods' names end in .{domain.text}"
        correction = f"{value.origin.name}={pod}.{domain.text}{port}"
    elif count is not None and int(match.group(1)) >= count:
        contradiction = f"the pods are named {workload.name}-0 to {workload.name}-{count - 1}"
        correction = f"{value.origin.name}={workload.name}-0.{domain.text}{port}"
    if contradiction:
        yield Claim(
            summary=f"{value.origin.name or 'the address'} is {value.text}, but {contradiction}",
            evidence=(value.evidence, Value(workload.name, workload.origin).evidence),
            fix=correction,
            where=value.origin.editor_place,
        )


def _facts(
    address: str, subdomain: str = "train", indexed: bool = True, kind: str = "Job"
) -> ManifestFacts:
    origin = Origin(variable="MASTER_ADDR", file="job.yaml", line=21, column=20)
    role = Role(
        name="",
        replicas=Value("2"),
        env={"MASTER_ADDR": Value(address, origin)},
        subdomain=Value(subdomain) if subdomain else None,
    )
    workload = Workload(kind=kind, name="mnist", roles=(role,), indexed=indexed)
    return ManifestFacts(workloads=(workload,))


def _volcano(address: str) -> ManifestFacts:
    origin = Origin(variable="MASTER_ADDR", file="job.yaml", line=21, column=20)
    tasks = (
        Role(name="master", replicas=Value("1")),
        Role(name="worker", replicas=Value("3"), env={"MASTER_ADDR": Value(address, origin)}),
    )
    return ManifestFacts(workloads=(Workload(kind="VolcanoJob", name="digits", roles=tasks),))


def _job_set(address: str) -> ManifestFacts:
    origin = Origin(variable="MASTER_ADDR", file="set.yaml", line=21, column=20)
    role = Role(name="workers", replicas=Value("4"), env={"MASTER_ADDR": Value(address, origin)})
    workload = Workload(kind="JobSet", name="train", roles=(role,), subdomain="train")
    return ManifestFacts(workloads=(workload,))


RULE = Rule(
    reads=ManifestFacts,
    check=check,
    fires_on={
        "MASTER_ADDR is a numbered pod of a Deployment": (
            _facts("mnist-0.train", kind="Deployment"),
            "MASTER_ADDR is mnist-0.train, but the pods of a Deployment have random names",
        ),
        "MASTER_ADDR is a pod's name, and the pods have no subdomain": (
            _facts("mnist-0", subdomain=""),
            "MASTER_ADDR is mnist-0, but the pods have no subdomain, so their names do not resolve",
        ),
        "MASTER_ADDR is a pod's name with another subdomain than the pods'": (
            _facts("mnist-0.svc"),
            "MASTER_ADDR is mnist-0.svc, but the pods' names end in .train",
        ),
        "MASTER_ADDR is a numbered pod of a Job that is not indexed": (
            _facts("mnist-0.train", indexed=False),
            "MASTER_ADDR is mnist-0.train, but the Job is not indexed, so its pods have random names",
        ),
        "MASTER_ADDR is a pod's name that is misspelt": (
            _facts("minst-0.train"),
            "MASTER_ADDR is minst-0.train, but the pods are named mnist-0 and so on",
        ),
        "MASTER_ADDR names a role that the JobSet does not have": (
            _job_set("train-worker-0-0.train"),
            "MASTER_ADDR is train-worker-0-0.train, but the pods are named train-workers-0-0.train and so on",
        ),
        "MASTER_ADDR has the role's name in place of the JobSet's service": (
            _job_set("train-workers-0-0.train-workers"),
            "MASTER_ADDR is train-workers-0-0.train-workers, but the pods' names end in .train",
        ),
        "MASTER_ADDR names a task that Volcano's Job does not have": (
            _volcano("digits-chief-0.digits"),
            "MASTER_ADDR is digits-chief-0.digits, but its tasks are master, worker",
        ),
        "MASTER_ADDR is a pod of Volcano's Job without the name of its service": (
            _volcano("digits-master-0"),
            "MASTER_ADDR is digits-master-0, but the pods' names resolve only with .digits, their service",
        ),
    },
    silent_on={
        "the name of a service, without a pod's number, for a Deployment": _facts(
            "mnist.train", kind="Deployment"
        ),
        "a numbered pod of a StatefulSet of another name": _facts(
            "other-0.train", kind="Deployment"
        ),
        "a pod's full name with its service and the cluster's domain": _facts(
            "mnist-0.train.default.svc.cluster.local"
        ),
        "a single name, which may be a service": _facts("master"),
        "a pod of another workload": _facts("coordinator-0.train"),
        "a pod of the JobSet with the JobSet's service": _job_set(
            "train-workers-0-3.train.default.svc"
        ),
        "a pod of another JobSet": _job_set("other-workers-0-0.other"),
        "a pod of Volcano's Job with the name of its service": _volcano("digits-master-0.digits"),
        "a host that is no pod of Volcano's Job": _volcano("store-0"),
    },
)
