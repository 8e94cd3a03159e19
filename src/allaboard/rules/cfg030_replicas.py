"""A manifest starts a different number of pods than it sets in their environment.

## Why it matters
A literal WORLD_SIZE, a TF_CONFIG or `--nnodes` in the pod template is not adjusted when somebody changes
`replicas`. With more pods than the world size, two of them claim one rank or one is refused; with fewer,
all wait for pods that are never started. Training operators set these variables themselves.

## What to do
Make the numbers equal, or remove the variable and let the operator set it.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.configuration.pod_meetings import (
    SINGLE_TEMPLATE_KINDS,
    PodMeetings,
    flag_value,
    meeting_places,
    place_key,
)
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ManifestFacts, Origin, Role, Severity, Value, Workload
from allaboard.formats.cli_flags import find_flags, words_after_each_program

_SINGLE_POD_ROLES = {"PyTorchJob": "Master", "MPIJob": "Launcher", "TFJob": "Chief"}
"""Roles of which the operators accept one pod only, by kind of job."""


def check(facts: ManifestFacts) -> Iterator[Claim]:
    reported_places: set[str] = set()
    meetings = PodMeetings(facts)
    for workload in facts.workloads:
        total, per = _count_processes(workload)
        if total is None:
            continue
        # Two Pods with --nnodes=2 that meet at one place are the two nodes.
        meeting = meetings.count_pods(workload)
        places = {place_key(v.text) for r in workload.roles for v in meeting_places(r)}
        if meeting is not None and places & reported_places:
            continue  # one fact of all of them
        total = meeting or total
        negative = any((r.replicas.integer or 0) < 0 for r in workload.roles)
        for role in workload.roles:
            yield from _check_replicas(workload, role)
            if negative:
                continue  # the intended number is unknown
            size = role.env.get("WORLD_SIZE")
            # One process per pod, or as many as the workload says; anything between is unknown.
            if size is not None and size.integer is not None and size.integer not in (
                total, total * per,
            ):  # fmt: skip
                yield _claim(workload, size, role, total, str(total * per))
                reported_places |= places
            for command in role.commands or (role.command,):
                nodes = flag_value(command, "--nnodes")
                if nodes is not None and nodes.integer is not None and nodes.integer != total:
                    yield _claim(workload, nodes, role, total, str(total))
                    reported_places |= places
        yield from _check_completions(workload)
        if not negative:
            yield from _check_slots(workload, total)


def _check_slots(workload: Workload, workers: int) -> Iterator[Claim]:
    """Report an mpirun of an MPIJob that asks for more processes than its workers have slots."""
    launcher = next((r for r in workload.roles if r.name == "Launcher"), None)
    if workload.kind != "MPIJob" or launcher is None:
        return
    slots_value = workload.per_node
    slots_per_worker = 1 if slots_value is None else slots_value.integer
    for command in words_after_each_program(launcher.commands, ("mpirun", "mpiexec")):
        flags = find_flags(command, frozenset(("np", "n", "c", "x", "map_by")), frozenset())
        process_flag = next((flags.values[n] for n in ("np", "n", "c") if n in flags.values), None)
        count = process_flag.integer if process_flag is not None else None
        free = any("oversubscribe" in w.text.lower() for w in command) or flags.is_opaque
        if (
            process_flag is None
            or count is None
            or slots_per_worker is None
            or free
            or count <= slots_per_worker * workers
        ):
            continue
        slots = slots_value or Value("1", workload.origin)
        flag, total = process_flag.origin.flag, slots_per_worker * workers
        yield Claim(
            summary=f"{flag} {count} asks for {count} processes, but MPIJob {workload.name} has {total} "
            f"slots: {workers} workers of {slots_per_worker}",
            evidence=(process_flag.evidence, slots.evidence),
            fix=f"{flag} {total}   # or Worker replicas: {-(-count // slots_per_worker)}",
            certainty=Certainty.LIKELY,
            where=process_flag.origin.editor_place,
        )


def _count_processes(workload: Workload) -> tuple[int | None, int]:
    """Return the number of training pods, None if unknown, and the number of processes in each."""
    counts = [
        r.replicas.integer for r in workload.roles if r.name not in ("Launcher", "Evaluator", "PS")
    ]
    if not counts or any(c is None for c in counts) or workload.elastic:
        return None, 1
    if workload.kind in ("JobSet", "VolcanoJob") and len(counts) > 1:
        return None, 1
    per = workload.per_node.integer if workload.per_node is not None else 1
    total = workload.completions.integer if workload.completions is not None else None
    return total or sum(c for c in counts if c is not None), per or 1


def _check_replicas(workload: Workload, role: Role) -> Iterator[Claim]:
    count = role.replicas.integer
    if count is not None and count < 0:
        yield Claim(
            summary=f"{workload.kind} {workload.name} has {count} {role.name} replicas; it must be at least "
            "0",
            evidence=(role.replicas.evidence,),
            fix="replicas: 1",
            where=role.replicas.origin.editor_place,
        )
    if _SINGLE_POD_ROLES.get(workload.kind) == role.name and count is not None and count > 1:
        yield Claim(
            summary=f"{workload.kind} {workload.name} has {count} {role.name} replicas; "
            "the operator accepts one",
            evidence=(role.replicas.evidence,),
            fix="replicas: 1   # and the others under Worker",
            where=role.replicas.origin.editor_place,
        )


def _check_completions(workload: Workload) -> Iterator[Claim]:
    """Report an indexed Job whose pods do not all run at the same time: they cannot meet."""
    parallelism, total = workload.parallelism, workload.completions
    if not workload.indexed or total is None or total.integer is None:
        return
    count = parallelism.integer if parallelism is not None else 1
    if count is None or count >= total.integer:
        return
    value = parallelism or total
    yield Claim(
        summary=f"Job {workload.name} runs {count} of its {total.integer} pods at a time: "
        "they wait for the others, which start only when these have ended",
        evidence=(value.evidence, total.evidence),
        fix=f"parallelism: {total.integer}",
        severity=Severity.ERROR if _is_one_job(workload) else Severity.WARNING,
        where=value.origin.editor_place,
    )


def _is_one_job(workload: Workload) -> bool:
    """Return True if the pods wait for each other, rather than work through a list."""
    names = {name for role in workload.roles for name in (*role.env, *role.computed)}
    commands = [c for role in workload.roles for c in role.commands]
    meets = any(flag_value(c, "--nnodes") or flag_value(c, "--rdzv-endpoint") for c in commands)
    return meets or bool(names & {"WORLD_SIZE", "MASTER_ADDR", "JAX_COORDINATOR_ADDRESS"})


def _claim(workload: Workload, declared: Value, role: Role, total: int, correction: str) -> Claim:
    name = declared.origin.variable or "--nnodes"
    count = declared.integer
    if workload.kind == "Pod" and count is not None and count > total:
        return _incomplete(workload, declared, total)
    if workload.kind in SINGLE_TEMPLATE_KINDS and total != role.replicas.integer:
        return Claim(
            summary=f"{name} is {declared.text}, but {total} pods meet at one place: {workload.kind} "
            f"{workload.name} and others of these files",
            evidence=(declared.evidence, *(v.evidence for v in [*meeting_places(role)][:1])),
            fix=f'{name}: "{correction}"' if declared.origin.variable else f"--nnodes={correction}",
            certainty=Certainty.LIKELY,
            where=declared.origin.editor_place,
        )
    replicas = role.replicas
    return Claim(
        summary=f"{name} is {declared.text}, but {workload.kind} {workload.name} starts {total} "
        f"pod{'s' if total != 1 else ''}",
        evidence=(declared.evidence, replicas.evidence),
        fix=f'{name}: "{correction}"' if declared.origin.variable else f"--nnodes={correction}",
        where=declared.origin.editor_place,
    )


def _incomplete(workload: Workload, declared: Value, total: int) -> Claim:
    """Report Pods that are fewer than they expect; the others may stand in files that were not given."""
    name = declared.origin.variable or "--nnodes"
    pods = "it is the only one" if total == 1 else f"only {total} pods meet"
    return Claim(
        summary=f"{name} is {declared.text} in Pod {workload.name}, but {pods} in the given files",
        evidence=(declared.evidence, Value(f"Pod {workload.name}", workload.origin).evidence),
        fix="allaboard check FOLDER   # with the manifests of the other pods",
        severity=Severity.INFO,
        certainty=Certainty.LIKELY,
        where=declared.origin.editor_place,
    )


def _pods(nodes: str, *places: str) -> ManifestFacts:
    """Return one Pod for each place, all with this --nnodes."""
    workloads = []
    for number, pod in enumerate(places):
        texts = (
            "torchrun",
            f"--nnodes={nodes}",
            f"--node_rank={number}",
            f"--master_addr={pod}",
            "t.py",
        )
        command = tuple(Value(w) for w in texts)
        role = Role(name="", replicas=Value("1"), command=command, commands=(command,))
        workloads.append(Workload(kind="Pod", name=f"w{number}", roles=(role,)))
    return ManifestFacts(workloads=tuple(workloads))


def _pytorch_job(replicas: str, size: str, per: str = "") -> ManifestFacts:
    origin = Origin(file="job.yaml", line=9, column=17)
    role = Role(
        name="Worker",
        replicas=Value(replicas, origin),
        env={"WORLD_SIZE": Value(size, Origin(variable="WORLD_SIZE", file="job.yaml", line=20))},
    )
    each = Value(per, origin) if per else None
    return ManifestFacts(
        workloads=(Workload(kind="PyTorchJob", name="mnist", roles=(role,), per_node=each),)
    )


def _mpi_job(count: str, *more: str) -> ManifestFacts:
    command = tuple(Value(w) for w in ("mpirun", *more, "-np", count, "python", "train.py"))
    launcher = Role(name="Launcher", replicas=Value("1"), command=command, commands=(command,))
    worker = Role(name="Worker", replicas=Value("2"))
    return ManifestFacts(
        workloads=(
            Workload(kind="MPIJob", name="mnist", roles=(launcher, worker), per_node=Value("4")),
        )
    )


RULE = Rule(
    reads=ManifestFacts,
    check=check,
    fires_on={
        "a PyTorchJob of 3 pods with WORLD_SIZE=4": (
            _pytorch_job("3", "4"),
            "WORLD_SIZE is 4, but PyTorchJob mnist starts 3 pods",
        ),
        "three Pods whose torchruns expect two nodes": (
            _pods("2", "w0", "w0", "w0"),
            "--nnodes is 2, but 3 pods meet at one place: Pod w0 and others of these files",
        ),
        "a single Pod whose torchrun expects two nodes": (
            _pods("2", "w0"),
            "--nnodes is 2 in Pod w0, but it is the only one in the given files",
        ),
        "mpirun starts 16 processes in an MPIJob of 8 slots": (
            _mpi_job("16"),
            "-np 16 asks for 16 processes, but MPIJob mnist has 8 slots: 2 workers of 4",
        ),
        "a negative number of replicas": (
            _pytorch_job("-2", "4"),
            "PyTorchJob mnist has -2 Worker replicas; it must be at least 0",
        ),
    },
    silent_on={
        "two Pods whose torchruns expect two nodes": _pods("2", "w0", "w0"),
        "four Pods that are two jobs of two nodes": _pods("2", "a", "a", "b", "b"),
        "a PyTorchJob of 4 pods with WORLD_SIZE=4": _pytorch_job("4", "4"),
        "two pods of 8 processes each, with WORLD_SIZE=16": _pytorch_job("2", "16", per="8"),
        "mpirun starts 8 processes in an MPIJob of 8 slots": _mpi_job("8"),
        "mpirun starts more processes than slots on purpose (`--oversubscribe`)": _mpi_job(
            "16", "--oversubscribe"
        ),
    },
)
