"""Kubernetes manifests: the cluster that the operators make known to their pods.

TFJob: ``NAME-worker-0.NAMESPACE.svc:2222``; PyTorchJob: ``NAME-master-0:23456`` and one rank a
process (the training operator's pages). JobSet, indexed Job and StatefulSet: the pods' DNS names
under their headless service (the Kubernetes pages "DNS for Services and Pods" and "Jobs"). MPIJob:
``NAME-worker-0.NAME``, as in the hostfile that its operator writes; TrainJob: ``NAME-node-0-0.NAME``, the
pods of the JobSet that it becomes.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import ConfigurationSource
from allaboard.facts import Machine, Material, PartialSpec, Role, Value, Workload

_MOST = 10_000
"""Pods of one role that are listed."""


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the cluster of the first workload that describes one, and the index of an indexed Job's pod."""
    index = material.variables.get("JOB_COMPLETION_INDEX")
    if material.kind == "environment" and index is not None:
        # What an indexed Job leaves in each of its pods.
        yield PartialSpec(source="kubernetes", layer="allocation", values={"node_rank": index})
    if material.manifests is None:
        return
    for workload in material.manifests.workloads:
        spec = _spec(workload)
        if spec is not None:
            yield spec
            return


def _spec(workload: Workload) -> PartialSpec | None:
    if workload.kind == "TFJob":
        return _tf_job(workload)
    if workload.kind == "PyTorchJob":
        return _pytorch_job(workload)
    names = _pods(workload)
    if not names:
        return None
    slots = workload.per_node.integer if workload.per_node is not None else None
    return PartialSpec(
        source="kubernetes",
        layer="allocation",
        framework="",
        machines=tuple(Machine(n, slots or 0) for n in names),
        values={"nproc_per_node": workload.per_node} if workload.per_node and slots else {},
    )


def _count(role: Role) -> int:
    return min(max(role.replicas.integer or 0, 0), _MOST)


def _port(role: Role, default: str) -> str:
    return role.ports[0].text if role.ports else default


def _tf_job(workload: Workload) -> PartialSpec:
    space = workload.namespace or "default"
    cluster = {}
    for role in workload.roles:
        job = role.name.lower()
        if job == "evaluator":
            continue
        port = _port(role, "2222")
        cluster[job] = tuple(
            Value(f"{workload.name}-{job}-{i}.{space}.svc:{port}", role.replicas.origin)
            for i in range(_count(role))
        )
    return PartialSpec(
        source="kubernetes",
        layer="allocation",
        framework="tensorflow",
        cluster={job: tasks for job, tasks in cluster.items() if tasks},
    )


def _pytorch_job(workload: Workload) -> PartialSpec:
    master = next((r for r in workload.roles if r.name == "Master"), None)
    machines = [
        Machine(Value(f"{workload.name}-{r.name.lower()}-{i}", r.replicas.origin), _slots(workload))
        for r in sorted(workload.roles, key=lambda r: r.name != "Master")
        for i in range(_count(r))
    ]
    values: dict[str, Value] = {}
    if master is not None:
        port = _port(master, "23456")
        values["master_addr"] = Value(f"{workload.name}-master-0", master.origin)
        values["master_port"] = Value(
            port, master.ports[0].origin if master.ports else master.origin
        )
    if all(r.replicas.integer is not None for r in workload.roles):
        total = sum(m.slots or 1 for m in machines)
        values["world_size"] = Value(str(total), workload.origin)
    return PartialSpec(
        source="kubernetes",
        layer="allocation",
        framework="pytorch",
        values=values,
        machines=tuple(machines),
    )


def _slots(workload: Workload) -> int:
    return (workload.per_node.integer or 0) if workload.per_node is not None else 0


def _pods(workload: Workload) -> list[Value]:
    """Return the names under which the pods find each other."""
    if workload.kind == "JobSet":
        return [
            Value(f"{workload.name}-{r.name}-0-{i}.{workload.subdomain}", r.replicas.origin)
            for r in workload.roles
            for i in range(_count(r))
        ]
    if workload.kind in ("MPIJob", "TrainJob"):
        group = "worker" if workload.kind == "MPIJob" else "node-0"
        counted = [r for r in workload.roles if r.name.lower() in ("worker", "node")]
        return [
            Value(f"{workload.name}-{group}-{i}.{workload.name}", r.replicas.origin)
            for r in counted
            for i in range(_count(r))
        ]
    names = []
    for role in workload.roles:
        domain = workload.service or role.subdomain
        if workload.kind not in ("Job", "StatefulSet") or domain is None:
            continue
        if workload.kind == "Job" and not workload.indexed:
            continue
        names += [
            Value(f"{workload.name}-{i}.{domain.text}", role.replicas.origin)
            for i in range(_count(role))
        ]
    return names


SOURCE = ConfigurationSource(read=read_material)
