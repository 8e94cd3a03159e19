"""Kubernetes documents read into workloads and services, with the position of every field.

Kinds and fields are those of the Kubernetes API (Job, StatefulSet, Deployment, Pod, Service), of the Kubeflow
training operator (TFJob, PyTorchJob, MPIJob, kubeflow.org/v1 and v2beta1), of Kubeflow Trainer (TrainJob,
trainer.kubeflow.org/v1alpha1) and of JobSet (jobset.x-k8s.io/v1alpha2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from allaboard.facts import ManifestFacts, Node, Problem, Role, Service, ServicePort, Workload
from allaboard.formats.manifests.pod_template import PodTemplateReader

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


def read_manifests(documents: Iterable[Node], file: str) -> ManifestFacts:
    """Return everything in these documents that takes part in a training job."""
    reader = PodTemplateReader(file)
    workloads: list[Workload] = []
    services: list[Service] = []
    for document in _flatten_lists(documents):
        reader.problems += _duplicate_keys(document, reader)
        kind = document.text_at("kind")
        if kind == "Service":
            services.append(_service(document, reader))
        else:
            workload = _workload(kind, document, reader)
            if workload is not None:
                workloads.append(workload)
    return ManifestFacts(
        workloads=tuple(workloads),
        services=tuple(services),
        problems=tuple(reader.problems),
    )


def merge_manifests(parts: Iterable[ManifestFacts]) -> ManifestFacts:
    """Return the manifests of several files that are applied together."""
    manifests = list(parts)
    problems: list[Problem] = [p for m in manifests for p in m.problems]
    return ManifestFacts(
        workloads=tuple(w for m in manifests for w in m.workloads),
        services=tuple(s for m in manifests for s in m.services),
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
    """Yield a problem for each key that stands twice in one mapping; shared nodes are visited once."""
    visited: set[int] = set()
    open_nodes = [document]
    while open_nodes:
        node = open_nodes.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        open_nodes += [*node.items.values(), *node.elements]
        for key, line, column in node.twice:
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
        per_node = spec.node_at("slotsPerWorker") if kind == "MPIJob" else per_node
    elif kind == "JobSet":
        replicated_jobs = spec.node_at("replicatedJobs")
        roles = tuple(
            _replicated_job_role(node, reader)
            for node in (replicated_jobs.elements if replicated_jobs is not None else ())
        )
    elif kind == "TrainJob":
        trainer = spec.node_at("trainer") or Node("map", spec.line, spec.column)
        roles = (reader.read_trainer(trainer),)
        per_node = trainer.node_at("numProcPerNode")
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
        elastic=spec.node_at("elasticPolicy") is not None,
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


def _replicated_job_role(node: Node, reader: PodTemplateReader) -> Role:
    """Return the role of a JobSet's replicated job.

    It has as many pods as its replicas times its Job's parallelism.
    """
    job = node.node_at("template", "spec") or Node("map", node.line, node.column)
    role = reader.read_role(node.text_at("name"), job, job.node_at("template"))
    replicas = node.node_at("replicas")
    return reader.multiply_replicas(role, replicas)


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
