"""A pod template with several replicas gives all of them one identity.

## Why it matters
Every pod of a template gets the same literal variables. With `RANK: "0"` or a whole TF_CONFIG in it, all
pods are the same member: the second one fails to bind, or silently takes the first one's place, and the
other members of the cluster are never started.

## What to do
Let the operator set RANK and TF_CONFIG, or take the number from the pod: JOB_COMPLETION_INDEX of an indexed
Job, the end of a StatefulSet pod's name.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Claim, ManifestFacts, Origin, Role, Value, Workload
from allaboard.formats.cli_flags import read_flags, words_after_each_program

_IDENTITY_VARIABLES = ("RANK", "TF_CONFIG", "JAX_PROCESS_ID", "NODE_RANK", "PET_NODE_RANK")
_FROM_POD_INDEX = """valueFrom:
  fieldRef:
    fieldPath: metadata.annotations['batch.kubernetes.io/job-completion-index']"""


def check(facts: ManifestFacts) -> Iterator[Claim]:
    for workload in facts.workloads:
        for role in workload.roles:
            count = role.replicas.integer
            if count is None or count < 2:
                continue
            for name in _IDENTITY_VARIABLES:
                value = role.env.get(name)
                if value is None or (name == "TF_CONFIG" and '"task"' not in value.text):
                    continue
                yield _claim(workload, role, value, count)
            node = _literal_node_rank(role)
            if node is not None:
                yield _claim(workload, role, node, count)


def _literal_node_rank(role: Role) -> Value | None:
    """Return the literal --node-rank of torchrun, unless something else numbers the nodes; else None."""
    for command in words_after_each_program(
        role.commands, ("torchrun",), ("torch.distributed.run",)
    ):
        values = read_flags(command, frozenset(["standalone", "module", "m", "no_python"])).values
        node, backend = values.get("node_rank"), values.get("rdzv_backend")
        several_nodes = (values["nnodes"].text if "nnodes" in values else "1") != "1"
        if several_nodes and node is not None and node.integer is not None and backend is None:
            return node
    return None


def _claim(workload: Workload, role: Role, value: Value, count: int) -> Claim:
    name = value.origin.name
    operator = workload.kind in ("TFJob", "PyTorchJob", "MPIJob")
    group = f" {role.name}" if role.name else ""
    return Claim(
        summary=f"all {count} pods of {workload.kind} {workload.name}{group} get {name}="
        f"{value.text if len(value.text) < 20 else '…'}: all of them are the same member",
        evidence=(value.evidence, role.replicas.evidence),
        fix=f"remove {name}: the operator sets it"
        if operator
        else _FROM_POD_INDEX
        if value.origin.variable
        else f"{name}=$JOB_COMPLETION_INDEX   # a StatefulSet: ${{HOSTNAME##*-}}",
        where=value.origin.editor_place,
    )


def _facts(replicas: str, name: str = "RANK", text: str = "0") -> ManifestFacts:
    origin = Origin(variable=name, file="job.yaml", line=18, column=20)
    role = Role(name="Worker", replicas=Value(replicas), env={name: Value(text, origin)})
    return ManifestFacts(workloads=(Workload(kind="PyTorchJob", name="mnist", roles=(role,)),))


def _torchrun_pods(*flags: str) -> ManifestFacts:
    command = tuple(
        Value(w, Origin(file="job.yaml", line=20)) for w in ("torchrun", *flags, "t.py")
    )
    role = Role(name="", replicas=Value("4"), commands=(command,))
    return ManifestFacts(workloads=(Workload(kind="StatefulSet", name="train", roles=(role,)),))


RULE = Rule(
    reads=ManifestFacts,
    check=check,
    fires_on={
        "RANK=0 in the template of three pods": (
            _facts("3"),
            "all 3 pods of PyTorchJob mnist Worker get RANK=0: all of them are the same member",
        ),
        "`--node-rank=0` in the template of four pods": (
            _torchrun_pods("--nnodes=4", "--node-rank=0", "--master-addr=train-0.train"),
            "all 4 pods of StatefulSet train get --node-rank=0: all of them are the same member",
        ),
    },
    silent_on={
        "RANK=0 in the template of a single pod": _facts("1"),
        "`--node-rank=0` with a c10d rendezvous, which assigns the numbers itself": _torchrun_pods(
            "--nnodes=4", "--node-rank=0", "--rdzv-backend=c10d"
        ),
        "`--node-rank=0` in pods that each run a job of one node": _torchrun_pods(
            "--nnodes=1", "--node-rank=0"
        ),
        "`--node-rank` is taken from the pod's name": _torchrun_pods(
            "--nnodes=4", "--node-rank=\0", "--master-addr=train-0.train"
        ),
        "WORLD_SIZE, which is rightly the same in all pods": _facts("3", "WORLD_SIZE", "4"),
    },
)
