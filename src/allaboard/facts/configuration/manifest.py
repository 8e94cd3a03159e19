"""What Kubernetes documents say of a training job, in the words of their own fields."""

from __future__ import annotations

import msgspec

from allaboard.facts.configuration.cluster import Origin, Problem, Value


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """One group of equal pods of a workload: a replica spec, a replicated job, or the whole.

    ``command`` is the training container's command and arguments, ``commands`` those of the shell
    scripts inside of it too; ``fixed`` is the pod spec's
    ``hostname``; ``host_network`` whether the pods use their host's network; ``containers`` are the
    containers' names; ``computed`` the variables whose values come from elsewhere (valueFrom). By its
    readinessProbe a pod is ready once something listens at ``ready_port``, or ``ready_command`` ends well.
    """

    name: str
    replicas: Value
    ports: tuple[Value, ...] = ()
    env: dict[str, Value] = {}
    computed: tuple[str, ...] = ()
    command: tuple[Value, ...] = ()
    commands: tuple[tuple[Value, ...], ...] = ()
    labels: dict[str, str] = {}
    subdomain: Value | None = None
    fixed: Value | None = None
    host_network: bool = False
    containers: tuple[Value, ...] = ()
    ready_port: Value | None = None
    ready_command: tuple[Value, ...] = ()
    origin: Origin = Origin()


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """One document that starts pods.

    ``service`` is a StatefulSet's ``serviceName``; ``parallelism`` and ``indexed`` are a Job's;
    ``per_node`` is nprocPerNode (PyTorchJob) or slotsPerWorker (MPIJob); ``subdomain`` the one
    under which a JobSet names its pods; ``elastic`` whether a PyTorchJob has an elasticPolicy;
    ``first`` the number of a StatefulSet's first pod, "" where it is the usual 0; ``at_once`` whether it
    starts its pods without waiting until the one before is ready (podManagementPolicy: Parallel).
    """

    kind: str
    name: str
    namespace: str = ""
    roles: tuple[Role, ...] = ()
    service: Value | None = None
    parallelism: Value | None = None
    indexed: bool = False
    completions: Value | None = None
    per_node: Value | None = None
    subdomain: str = ""
    elastic: bool = False
    first: str = ""
    at_once: bool = False
    origin: Origin = Origin()


class ServicePort(msgspec.Struct, frozen=True, kw_only=True):
    """One port of a Service; ``target`` is a number or the name of a container port."""

    port: Value
    target: Value | None = None


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """One Service; ``headless`` is ``clusterIP: None``, under which pod names resolve."""

    name: str
    namespace: str = ""
    headless: bool = False
    ports: tuple[ServicePort, ...] = ()
    selector: dict[str, str] = {}
    origin: Origin = Origin()


class ManifestFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All documents that were given together."""

    workloads: tuple[Workload, ...] = ()
    services: tuple[Service, ...] = ()
    problems: tuple[Problem, ...] = ()
