"""Kubernetes documents read into workloads and services, with the position of every field.

Kinds and fields are those of the Kubernetes API (Job, StatefulSet, Deployment, Pod, Service), of the Kubeflow
training operator (TFJob, PyTorchJob, MPIJob, kubeflow.org/v1 and v2beta1), of Kubeflow Trainer (TrainJob,
trainer.kubeflow.org/v1alpha1), of JobSet (jobset.x-k8s.io/v1alpha2), of LeaderWorkerSet and of Volcano's Job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from allaboard.facts import (
    ManifestFacts,
    Namespace,
    Node,
    Problem,
    Role,
    Service,
    ServicePort,
    Value,
    Workload,
)
from allaboard.formats.manifests.pod_template import PodTemplateReader, is_envsubst_template

_REPLICA_SPECS = {
    "TFJob": "tfReplicaSpecs",
    "PyTorchJob": "pytorchReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
}
_KNOWN_ROLES = {
    "TFJob": ("Chief", "Master", "PS", "Worker", "Evaluator"),
    "PyTorchJob": ("Master", "Worker"),
    "MPIJob": ("Launcher", "Worker"),
}
"""Groups of replicas that the training operator knows, in any case (its validation of each kind)."""
MAX_DOCUMENTS = 20_000


def read_manifests(
    documents: Iterable[Node], file: str, has_variables: bool = True
) -> ManifestFacts:
    """Return everything in these documents that takes part in a training job.

    ``has_variables`` is False if no ``$`` stands in the text, which saves looking for variables.
    """
    reader = PodTemplateReader(file)
    workloads: list[Workload] = []
    services: list[Service] = []
    namespaces: list[Namespace] = []
    for document in _flatten_lists(documents):
        reader.problems += _duplicate_keys(document, reader)
        kind = document.text_at("kind")
        reader.is_template = has_variables and is_envsubst_template(document)
        if kind == "Namespace":
            namespaces.append(_namespace(document, reader))
        elif kind == "Service":
            services.append(_service(document, reader))
        else:
            workload = _workload(kind, document, reader)
            if workload is not None:
                workloads.append(workload)
    return ManifestFacts(
        workloads=tuple(workloads),
        services=tuple(services),
        namespaces=tuple(namespaces),
        problems=tuple(reader.problems),
    )


def merge_manifests(parts: Iterable[ManifestFacts]) -> ManifestFacts:
    """Return the manifests of several files that are applied together."""
    manifests = list(parts)
    problems: list[Problem] = [p for m in manifests for p in m.problems]
    return ManifestFacts(
        workloads=tuple(w for m in manifests for w in m.workloads),
        services=tuple(s for m in manifests for s in m.services),
        namespaces=tuple(n for m in manifests for n in m.namespaces),
        problems=tuple(problems),
    )


def _flatten_lists(documents: Iterable[Node]) -> Iterator[Node]:
    """Yield the documents, with those inside a ``kind: List``."""
    for count, document in enumerate(documents):
        if count >= MAX_DOCUMENTS:
            return
        if document.kind != "map":
            continue
        items = document.node_at("items")
        if document.text_at("kind") == "List" and items is not None:
            yield from (d for d in items.elements if d.kind == "map")
        else:
            yield document


def _duplicate_keys(document: Node, reader: PodTemplateReader) -> Iterator[Problem]:
    """Yield a problem for each key that stands twice in one mapping; shared nodes are visited once.

    Kubernetes refuses a key that is repeated with the same value; to other programs that makes no difference.
    """
    is_strict = bool(document.text_at("kind") and document.text_at("apiVersion"))
    visited: set[int] = set()
    open_nodes = [document]
    while open_nodes:
        node = open_nodes.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        open_nodes += [*node.items.values(), *node.elements]
        for key, line, column in node.twice:
            if not is_strict and key not in node.changed_keys:
                continue
            key_node = Node("string", line, column, key)
            yield Problem(
                kind="manifest.twice",
                message=f"the key {key!r} appears twice in one mapping: the first one is ignored",
                observed=f"{key}: again",
                correction=f"one {key!r}, with what both say",
                origin=reader.origin_of(key_node, key),
            )


def _workload(kind: str, document: Node, reader: PodTemplateReader) -> Workload | None:
    spec = document.node_at("spec")
    if spec is None or spec.kind != "map":
        return None
    roles: tuple[Role, ...]
    per_node = spec.node_at("nprocPerNode")
    if kind in _REPLICA_SPECS:
        specs = spec.node_at(_REPLICA_SPECS[kind])
        replica_specs = specs.items.items() if specs is not None else ()
        roles = tuple(
            reader.read_role(name, node, node.node_at("template")) for name, node in replica_specs
        )
        if specs is not None:
            reader.problems += _unknown_roles(kind, document, specs, reader)
        if kind == "MPIJob":
            per_node = spec.node_at("slotsPerWorker")
        elif per_node is None:
            per_node = spec.node_at("elasticPolicy", "nProcPerNode")  # where it stood before
    elif kind == "JobSet":
        replicated_jobs = spec.node_at("replicatedJobs")
        roles = tuple(
            _replicated_job_role(node, reader)
            for node in (replicated_jobs.elements if replicated_jobs is not None else ())
        )
    elif kind == "TrainJob":
        trainer = spec.node_at("trainer") or Node("map", spec.line, spec.column)
        roles = (_with_annotations(reader.read_trainer(trainer), spec, reader),)
        per_node = trainer.node_at("numProcPerNode")
    elif kind == "LeaderWorkerSet":
        roles = tuple(_group_roles(spec, reader))
    elif kind == "Job" and spec.node_at("tasks") is not None:
        # Volcano's Job: its tasks are groups of pods.
        kind, tasks = "VolcanoJob", spec.node_at("tasks")
        roles = tuple(
            reader.read_role(task.text_at("name"), task, task.node_at("template"))
            for task in (tasks.elements if tasks is not None else ())
        )
    elif kind in ("Job", "StatefulSet", "Deployment", "ReplicaSet"):
        roles = (reader.read_role("", spec, spec.node_at("template")),)
    elif kind == "Pod":
        roles = (reader.read_role("", spec, document),)
    else:
        return None
    name = document.text_at("metadata", "name")
    network = spec.text_at("network", "subdomain")
    return Workload(
        kind=kind,
        name=name,
        namespace=document.text_at("metadata", "namespace"),
        roles=roles,
        service=reader.value_of(spec.node_at("serviceName"), "spec.serviceName"),
        parallelism=reader.value_of(spec.node_at("parallelism"), "spec.parallelism"),
        completions=reader.value_of(spec.node_at("completions"), "spec.completions"),
        indexed=spec.text_at("completionMode") == "Indexed",
        per_node=reader.value_of(
            per_node, "spec.slotsPerWorker" if kind == "MPIJob" else "spec.nprocPerNode"
        ),
        subdomain=(network or name) if kind == "JobSet" else "",
        without_names=spec.text_at("network", "enableDNSHostnames").lower() == "false",
        elastic=spec.node_at("elasticPolicy") is not None,
        dynamic=_if_true(
            reader.value_of(spec.node_at("enableDynamicWorker"), "enableDynamicWorker")
        ),
        first_pod=spec.text_at("ordinals", "start"),
        at_once=spec.text_at("podManagementPolicy") == "Parallel",
        origin=reader.origin_of(document, f"{kind}/{name}"),
    )


def _unknown_roles(
    kind: str, document: Node, specs: Node, reader: PodTemplateReader
) -> Iterator[Problem]:
    """Yield a problem for each group of replicas that the operator does not know."""
    known_roles = _KNOWN_ROLES.get(kind, ())
    for name, (line, column) in specs.keys.items():
        if not known_roles or name.lower() in (k.lower() for k in known_roles):
            continue
        aliases = {
            "parameterserver": "PS",
            "server": "PS",
            "launchers": "Launcher",
            "eval": "Evaluator",
        }
        normalized = name.lower().replace("_", "").replace("-", "").rstrip("s")
        suggestion = next(
            (k for k in known_roles if k.lower() == normalized), aliases.get(normalized, "Worker")
        )
        yield Problem(
            kind="manifest.role",
            message=f"{kind} {document.text_at('metadata', 'name')} has replicas called {name!r}; "
            f"its operator knows {', '.join(known_roles)}",
            observed=f"{name}:",
            correction=f"{suggestion}:",
            origin=reader.origin_of(Node("string", line, column, name), name),
        )


def _group_roles(spec: Node, reader: PodTemplateReader) -> Iterator[Role]:
    """Yield the leader and the workers of one group of a LeaderWorkerSet (leaderworkerset.x-k8s.io/v1).

    ``size`` counts both; without a template of its own the leader has the workers'. Each of the ``replicas``
    is a group by itself, so one group is what belongs together.
    """
    group = spec.node_at("leaderWorkerTemplate")
    size = reader.value_of(group.node_at("size"), "size") if group is not None else None
    if group is None:
        return
    workers, leader = group.node_at("workerTemplate"), group.node_at("leaderTemplate")
    total = size or Value("1", reader.origin_of(group, "size (default)"))
    count = total.integer
    if leader is None:
        yield msgspec.structs.replace(reader.read_role("worker", group, workers), replicas=total)
        return
    yield reader.read_role("leader", Node("map", group.line, group.column), leader)
    other_count = Value("" if count is None else str(count - 1), total.origin)
    yield msgspec.structs.replace(reader.read_role("worker", group, workers), replicas=other_count)


def _with_annotations(role: Role, spec: Node, reader: PodTemplateReader) -> Role:
    """Return a TrainJob's role with the labels and annotations that its pods get."""
    return msgspec.structs.replace(
        role,
        labels=reader.texts_of(spec, "labels"),
        annotations=reader.texts_of(spec, "annotations"),
    )


def _replicated_job_role(node: Node, reader: PodTemplateReader) -> Role:
    """Return the role of a JobSet's replicated job.

    It has as many pods as its replicas times its Job's parallelism.
    """
    job = node.node_at("template", "spec") or Node("map", node.line, node.column)
    role = reader.read_role(node.text_at("name"), job, job.node_at("template"))
    replicas = node.node_at("replicas")
    return reader.multiply_replicas(role, replicas)


def _if_true(value: Value | None) -> Value | None:
    return value if value is not None and value.text.lower() == "true" else None


def _namespace(document: Node, reader: PodTemplateReader) -> Namespace:
    marks = {}
    for field in ("labels", "annotations"):
        node = document.node_at("metadata", field)
        for key, mark in node.items.items() if node is not None else ():
            value = reader.value_of(mark, key)
            if value is not None:
                marks[key] = value
    name = document.text_at("metadata", "name")
    return Namespace(name=name, marks=marks, origin=reader.origin_of(document, f"Namespace/{name}"))


def _service(document: Node, reader: PodTemplateReader) -> Service:
    spec = document.node_at("spec") or Node("map", document.line, document.column)
    ports_node = spec.node_at("ports")
    ports = []
    for port in ports_node.elements if ports_node is not None else ():
        number = reader.value_of(port.node_at("port"), "spec.ports.port")
        if number is not None:
            target = reader.value_of(port.node_at("targetPort"), "spec.ports.targetPort")
            ports.append(ServicePort(port=number, target=target))
    selector = spec.node_at("selector")
    name = document.text_at("metadata", "name")
    return Service(
        name=name,
        namespace=document.text_at("metadata", "namespace"),
        headless=spec.text_at("clusterIP") == "None",
        ports=tuple(ports),
        selector={k: n.text for k, n in selector.items.items()} if selector is not None else {},
        origin=reader.origin_of(document, f"Service/{name}"),
    )
