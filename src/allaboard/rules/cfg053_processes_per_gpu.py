"""A pod starts more processes than its container has GPUs.

## Why it matters
The launcher counts `nprocPerNode`, `numProcPerNode`, `slotsPerWorker` or `--nproc-per-node`; Kubernetes gives
the container only the GPUs of its limits. The processes beyond them fail with "invalid device ordinal", or
take a GPU that another rank has, which NCCL refuses ("Duplicate GPU detected").

## What to do
Make the two numbers equal: ask for more GPUs in the limits, or start fewer processes in each pod. CUDA's MPS
does not help with NCCL: it refuses two ranks on one GPU there, too. Nothing is reported where a script asks
for gloo, or where variables of MPS are set: then the GPU is shared on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ManifestFacts, Origin, Role, Value, Workload
from allaboard.formats.cli_flags import find_flags, read_flags, words_after_program
from allaboard.formats.python_commands import TORCHRUN_MODULES, TORCHRUN_VALUELESS

_PRESET = "PET_NPROC_PER_NODE"
"""Variable that torchrun takes for its --nproc-per-node."""
_UNKNOWN = "?"
"""Stands for a number that only a run could tell."""
_GLOO = re.compile(r"(?:\A|[=:,])(?:\w+:)?gloo\Z", re.IGNORECASE)
_SHARED_ON_PURPOSE = "CUDA_MPS_"


def check(facts: ManifestFacts) -> Iterator[Claim]:
    for workload in facts.workloads:
        for role in workload.roles:
            gpus = role.gpus.integer if role.gpus is not None else None
            processes = _processes_of(workload, role)
            count = processes.integer if processes is not None else None
            if (
                role.gpus is None
                or processes is None
                or not gpus
                or count is None
                or count <= gpus
                or _shares_on_purpose(role)
            ):
                continue
            yield _claim(workload, role, processes, role.gpus)


def _claim(workload: Workload, role: Role, processes: Value, gpus: Value) -> Claim:
    pods = f"each {role.name} pod" if role.name else "each pod"
    count = gpus.integer or 0
    return Claim(
        summary=f"{workload.kind} {workload.name} starts {processes.text} processes in {pods}, but its "
        f"container has {count} GPU{'s' if count != 1 else ''}",
        evidence=(processes.evidence, gpus.evidence),
        fix=f"{_setting(processes, str(count))}   # or {gpus.origin.key.rpartition('.limits.')[2]}: "
        f"{processes.text}",
        certainty=Certainty.LIKELY,
        where=processes.origin.editor_place,
    )


def _setting(processes: Value, count: str) -> str:
    """Return the line that sets the number of processes, as its writer set it."""
    origin = processes.origin
    if origin.flag:
        return f"{origin.flag}={count}"
    name = origin.variable or origin.key.rpartition(".")[2]
    is_number = name in ("slotsPerWorker", "numProcPerNode")
    return f"{name}: {count}" if is_number else f'{name}: "{count}"'


def _processes_of(workload: Workload, role: Role) -> Value | None:
    """Return the number of processes that a pod of this role starts; None if it is one, or not known."""
    if workload.kind == "MPIJob":
        return workload.per_node if role.name.lower() == "worker" else None
    flags = [_count_flag(command) for command in role.commands or (role.command,)]
    launched = [value for value in flags if value is not None]
    stated = next((value for value in launched if value.text), None)
    if stated is not None:
        return stated
    if launched and _PRESET in role.env:
        return role.env[_PRESET]
    # Without torchrun the operator's number only enters WORLD_SIZE; an image may have it as its entry point.
    runs_torchrun = bool(launched) or not role.command
    has_operator = workload.kind in ("PyTorchJob", "TrainJob")
    return workload.per_node if has_operator and runs_torchrun else None


def _count_flag(command: Sequence[Value]) -> Value | None:
    """Return a launcher's number of processes, with an empty text if it states none; None without one."""
    arguments = words_after_program(command, ("torchrun",), TORCHRUN_MODULES)
    if arguments is not None:
        flags = read_flags(arguments, TORCHRUN_VALUELESS)
        value = flags.values.get("nproc_per_node")
        is_unknown = flags.is_opaque if value is None else not value.text
        return Value(_UNKNOWN) if is_unknown else value or Value("")
    arguments = words_after_program(command, ("deepspeed",), ())
    if arguments is not None:
        flags = find_flags(arguments, frozenset(("num_gpus", "num_nodes", "hostfile")), frozenset())
        return flags.values.get("num_gpus")
    return None


def _shares_on_purpose(role: Role) -> bool:
    """Return True if several processes are to use one GPU: over gloo, or by CUDA's MPS."""
    names = (*role.env, *role.computed)
    texts = [w.text for command in (role.command, *role.commands) for w in command]
    texts += [value.text for value in role.env.values()]
    return any(n.startswith(_SHARED_ON_PURPOSE) for n in names) or any(
        _GLOO.search(text.strip()) for text in texts
    )


_LIMIT = "Worker.resources.limits.nvidia.com/gpu"


def _job(
    processes: str,
    gpus: str,
    *command: str,
    kind: str = "PyTorchJob",
    env: dict[str, str] | None = None,
) -> ManifestFacts:
    words = tuple(
        Value(w, Origin(flag=w.partition("=")[0] if w.startswith("--") else "")) for w in command
    )
    limit = Value(gpus, Origin(key=_LIMIT, file="job.yaml", line=20)) if gpus else None
    role = Role(
        name="Worker",
        replicas=Value("2"),
        command=words,
        commands=(words,) if words else (),
        env={name: Value(text) for name, text in (env or {}).items()},
        gpus=limit,
    )
    key = {"MPIJob": "spec.slotsPerWorker"}.get(kind, "spec.nprocPerNode")
    per_node = Value(processes, Origin(key=key, file="job.yaml", line=6)) if processes else None
    return ManifestFacts(
        workloads=(Workload(kind=kind, name="mnist", roles=(role,), per_node=per_node),)
    )


def _without_operator(facts: ManifestFacts, kind: str) -> ManifestFacts:
    workloads = [msgspec.structs.replace(w, kind=kind, per_node=None) for w in facts.workloads]
    return ManifestFacts(workloads=tuple(workloads))


_TORCHRUN = ("torchrun", "--nproc-per-node=4", "train.py")
RULE = Rule(
    reads=ManifestFacts,
    check=check,
    fires_on={
        "a PyTorchJob with `nprocPerNode: 4` and 2 GPUs in a container": (
            _job("4", "2"),
            "PyTorchJob mnist starts 4 processes in each Worker pod, but its container has 2 GPUs",
        ),
        "torchrun with `--nproc-per-node=4` and 1 GPU in the container": (
            _without_operator(_job("", "1", *_TORCHRUN), "JobSet"),
            "JobSet mnist starts 4 processes in each Worker pod, but its container has 1 GPU",
        ),
        "torchrun without a flag, `nprocPerNode: 8` and 4 GPUs": (
            _job("8", "4", "torchrun", "train.py"),
            "PyTorchJob mnist starts 8 processes in each Worker pod, but its container has 4 GPUs",
        ),
        "an MPIJob with 8 slots per worker and 4 GPUs": (
            _job("8", "4", kind="MPIJob"),
            "MPIJob mnist starts 8 processes in each Worker pod, but its container has 4 GPUs",
        ),
        "deepspeed with `--num_gpus=4` and 2 GPUs": (
            _without_operator(_job("", "2", "deepspeed", "--num_gpus=4", "train.py"), "Job"),
            "Job mnist starts 4 processes in each Worker pod, but its container has 2 GPUs",
        ),
    },
    silent_on={
        "4 processes and 4 GPUs": _job("4", "4"),
        "2 processes and 4 GPUs": _job("2", "4"),
        "`nprocPerNode: auto`, which means as many as there are GPUs": _job(
            "auto", "2", "torchrun", "train.py"
        ),
        "a container without a limit for GPUs": _job("4", ""),
        "a container with a limit of 0 GPUs": _job("4", "0"),
        "`--backend=gloo`, which does not need GPUs": _job("4", "1", *_TORCHRUN, "--backend=gloo"),
        "BACKEND=gloo in the environment, which does not need GPUs": _job(
            "4", "1", env={"BACKEND": "gloo"}
        ),
        "processes that share a GPU by NVIDIA's MPS": _job(
            "4", "1", env={"CUDA_MPS_PIPE_DIRECTORY": "/mps"}
        ),
        "`python train.py`, one process whatever `nprocPerNode` says": _job(
            "4", "1", "python", "train.py"
        ),
        "torchrun with `--nproc-per-node=2`, which overrides `nprocPerNode: 4`": _job(
            "4", "2", "torchrun", "--nproc-per-node=2", "train.py"
        ),
        "torchrun with a `--nproc-per-node` that only a run could tell": _job(
            "4", "2", "torchrun", "--nproc-per-node=", "train.py"
        ),
    },
    unstaged="needs a cluster with GPUs: the corpus in tests/corpus stages the manifests",
)
