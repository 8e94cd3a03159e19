"""A manifest sets a variable of torchrun that its operator sets itself.

## Why it matters
Kubeflow's operators describe the job to torchrun by PET_NNODES, PET_NPROC_PER_NODE, PET_NODE_RANK,
PET_MASTER_ADDR and PET_MASTER_PORT. A TrainJob that sets one of them is refused ("must not have reserved
envs"). In a PyTorchJob the operator appends its own value, and of two the last one counts: yours has no
effect.

## What to do
Remove the variable. Say it in the job's own fields: `replicas` and `nprocPerNode` of a PyTorchJob, `numNodes`
and `numProcPerNode` of a TrainJob.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ManifestFacts, Origin, Role, Severity, Value, Workload

_FIELDS = {
    "PyTorchJob": {
        "PET_NNODES": "replicas",
        "PET_NPROC_PER_NODE": "nprocPerNode",
        "PET_NODE_RANK": "",
    },
    "TrainJob": {
        "PET_NNODES": "numNodes",
        "PET_NPROC_PER_NODE": "numProcPerNode",
        "PET_NODE_RANK": "",
        "PET_MASTER_ADDR": "",
        "PET_MASTER_PORT": "",
    },
}
"""Variables that the operator of a kind sets always, with the field that says the same."""


def check(facts: ManifestFacts) -> Iterator[Claim]:
    for workload in facts.workloads:
        if workload.kind == "PyTorchJob" and not _has_master(workload):
            continue
        for role in workload.roles:
            for name, field in _FIELDS.get(workload.kind, {}).items():
                value = role.env.get(name)
                if value is not None:
                    yield _claim(workload, value, field)


def _has_master(workload: Workload) -> bool:
    """Return True if the operator numbers the pods: without a master it leaves that to torchrun."""
    return any(r.name == "Master" for r in workload.roles)


def _claim(workload: Workload, value: Value, field: str) -> Claim:
    name = value.origin.variable
    is_refused = workload.kind == "TrainJob"
    consequence = (
        "is refused: the variable is reserved"
        if is_refused
        else "has no effect: the operator appends its own value, which counts"
    )
    remedy = f"{field}: {value.text}   # in place of the variable" if field and value.text else ""
    if field == "replicas":
        remedy = f"remove {name}; the replicas of Master and Worker add up to it"
    return Claim(
        summary=f"{name} in {workload.kind} {workload.name} {consequence}",
        evidence=(value.evidence, Value(workload.kind, workload.origin).evidence),
        fix=remedy or f"remove {name}",
        severity=Severity.ERROR if is_refused else Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=value.origin.editor_place,
    )


def _facts(kind: str, *names: str, role: str = "Master") -> ManifestFacts:
    env = {n: Value("3", Origin(variable=n, file="job.yaml", line=18, column=20)) for n in names}
    roles = (Role(name=role, replicas=Value("1"), env=env),)
    return ManifestFacts(workloads=(Workload(kind=kind, name="bert", roles=roles),))


RULE = Rule(
    reads=ManifestFacts,
    check=check,
    fires_on={
        "PET_NNODES in a PyTorchJob": (
            _facts("PyTorchJob", "PET_NNODES"),
            "PET_NNODES in PyTorchJob bert has no effect: the operator appends its own value, which counts",
        ),
        "PET_MASTER_PORT in a TrainJob": (
            _facts("TrainJob", "PET_MASTER_PORT", role=""),
            "PET_MASTER_PORT in TrainJob bert is refused: the variable is reserved",
        ),
    },
    silent_on={
        "variables that the operator leaves alone": _facts(
            "PyTorchJob", "NCCL_DEBUG", "PET_MAX_RESTARTS"
        ),
        "PET_NNODES in a plain Job, which has no operator": _facts("Job", "PET_NNODES"),
        "PET_NODE_RANK in a PyTorchJob that has only workers": _facts(
            "PyTorchJob", "PET_NODE_RANK", role="Worker"
        ),
    },
)
