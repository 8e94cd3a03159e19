"""Facts about a training job from Kubernetes documents, in the words of their own fields."""

from __future__ import annotations

import msgspec

from allaboard.facts.configuration.cluster import Origin, Problem, Value


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """One group of equal pods of a workload: a replica spec, a replicated job, or the whole."""

    name: str
    """Its name."""
    replicas: Value
    """How many pods it has."""
    ports: tuple[Value, ...] = ()
    """Ports of the training container."""
    env: dict[str, Value] = {}
    """Variables with literal values."""
    computed: tuple[str, ...] = ()
    """Variables whose values come from elsewhere (valueFrom)."""
    command: tuple[Value, ...] = ()
    """The training container's command and arguments."""
    commands: tuple[tuple[Value, ...], ...] = ()
    """That command and those of the shell scripts inside it."""
    labels: dict[str, str] = {}
    """Labels of the pods."""
    annotations: dict[str, str] = {}
    """Annotations of the pods."""
    subdomain: Value | None = None
    """The pod spec's ``subdomain``."""
    fixed: Value | None = None
    """The pod spec's ``hostname``."""
    host_network: bool = False
    """True if the pods use their host's network."""
    service_links: bool = True
    """False if nothing is set in the pods for the Services of their namespace (``enableServiceLinks:
    false``), or if they take variables from elsewhere that are not known (``envFrom``)."""
    containers: tuple[Value, ...] = ()
    """Names of the containers."""
    gpus: Value | None = None
    """How many whole GPUs the training container may use, by its limits; None if it asks for none."""
    ready_port: Value | None = None
    """By its readinessProbe a pod is ready once something listens at this port."""
    ready_command: tuple[Value, ...] = ()
    """By its readinessProbe a pod is ready once this command ends well."""
    origin: Origin = Origin()
    """Where it stands."""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """One document that starts pods."""

    kind: str
    """Its kind, as written."""
    name: str
    """Its name."""
    namespace: str = ""
    """Its namespace; "" for the default."""
    roles: tuple[Role, ...] = ()
    """Its groups of pods."""
    service: Value | None = None
    """A StatefulSet's ``serviceName``."""
    parallelism: Value | None = None
    """A Job's ``parallelism``."""
    indexed: bool = False
    """True if a Job's completion mode is Indexed."""
    completions: Value | None = None
    """A Job's ``completions``."""
    per_node: Value | None = None
    """nprocPerNode of a PyTorchJob, or slotsPerWorker of an MPIJob."""
    without_names: bool = False
    """True if a JobSet says that its pods get no names (``network.enableDNSHostnames: false``)."""
    subdomain: str = ""
    """The one under which a JobSet names its pods."""
    elastic: bool = False
    """True if a PyTorchJob has an elasticPolicy."""
    dynamic: Value | None = None
    """A TFJob's ``enableDynamicWorker`` if it is true."""
    first_pod: str = ""
    """Number of a StatefulSet's first pod; "" for the default 0."""
    at_once: bool = False
    """True if it starts its pods without waiting until the one before is ready (podManagementPolicy:
    Parallel)."""
    origin: Origin = Origin()
    """Where it stands."""


class ServicePort(msgspec.Struct, frozen=True, kw_only=True):
    """One port of a Service."""

    port: Value
    """Its number."""
    target: Value | None = None
    """Number or name of a container port; None for the same number."""


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """One Service of Kubernetes."""

    name: str
    """Its name."""
    namespace: str = ""
    """Its namespace; "" for the default."""
    headless: bool = False
    """True for ``clusterIP: None``, under which pod names resolve."""
    ports: tuple[ServicePort, ...] = ()
    """Its ports."""
    selector: dict[str, str] = {}
    """Labels of the pods behind it."""
    origin: Origin = Origin()
    """Where it stands."""


class Namespace(msgspec.Struct, frozen=True, kw_only=True):
    """One Namespace of Kubernetes."""

    name: str
    """Its name."""
    marks: dict[str, Value] = {}
    """Its labels and annotations."""
    origin: Origin = Origin()
    """Where it stands."""


class ManifestFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All documents that were given together."""

    workloads: tuple[Workload, ...] = ()
    """Those that start pods."""
    services: tuple[Service, ...] = ()
    """The Services."""
    namespaces: tuple[Namespace, ...] = ()
    """The Namespaces."""
    problems: tuple[Problem, ...] = ()
    """What could not be read."""
