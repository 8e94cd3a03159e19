"""The facts that rules of the configuration stage read."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from allaboard.facts.configuration.cluster import ClusterSpec, Origin, PartialSpec, Problem, Value


class LocalHost(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about this host that need no network."""

    name: str = ""
    """Its name."""
    named: tuple[str, ...] = ()
    """Addresses that its hosts file gives its own name."""
    interfaces: tuple[str, ...] = ()
    """Names of its network interfaces."""
    addresses: tuple[str, ...] = ()
    """IPv4 addresses of its interfaces."""
    gpus: int = -1
    """Number of NVIDIA device files; -1 if they were not counted."""
    infiniband: tuple[str, ...] = ()
    """RDMA devices of the kernel."""


class FilePlace(msgspec.Struct, frozen=True, kw_only=True):
    """The file of a file:// rendezvous as this host sees it."""

    path: str
    """Its path."""
    folder: bool = True
    """True if its folder exists."""
    writable: bool = True
    """True if it can be written here."""
    size: int = -1
    """Bytes; -1 if there is no such file."""
    age: float = -1.0
    """Seconds since it was last written; -1 if there is no such file."""
    filesystem: str = ""
    """The kernel's name of its filesystem (ext4, nfs4)."""
    options: str = ""
    """Options of the mount."""


class ConfigFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One subject of `check`: this environment or one file, with everything read from it."""

    subject: str = "environment"
    """Name of the subject, for people."""
    kind: str = "environment"
    """environment, json, manifest, accelerate, hostfile, shell, python or url."""
    spec: ClusterSpec
    """The merged statement of all sources."""
    parts: tuple[PartialSpec, ...] = ()
    """The statements of the sources one by one."""
    problems: tuple[Problem, ...] = ()
    """What could not be read."""
    variables: dict[str, Value] = {}
    """Environment variables with literal values."""
    opaque: frozenset[str] = frozenset()
    """Variables that are set, but to a value that only a run could tell."""
    host: LocalHost | None = None
    """This host; None if the subject is a file, which may be meant for another host."""
    place: FilePlace | None = None
    """The file of a file:// rendezvous, as seen from here; None for none."""
    every: bool = False
    """True if the subject is to be judged for all of its tasks, not for the one that it names."""
    workload: str = ""
    """Kind of the Kubernetes object that the subject is a role of, as the manifest writes it; else ""."""
    own_scripts: int = 0
    """Number of scripts given together that each set the task of one member of this cluster; 0 for others."""
    one_host: bool = False
    """True if a script starts the nodes of a job beside each other, on the host that it runs on."""
    api: str = ""
    """``tf.contrib.learn`` if a script that was given with it reads it by that interface; else ""."""

    def part_of_source(self, source: str) -> PartialSpec | None:
        """Return the statement of this source; None if it states nothing."""
        return next((p for p in self.parts if p.source == source), None)

    def is_set(self, name: str) -> bool:
        """Return True if the variable is set at all, be its value literal or not."""
        return name in self.variables or name in self.opaque


def sample_config_facts(
    kind: str = "environment",
    *,
    cluster: dict[str, list[str]] | None = None,
    task: tuple[str, int] | None = None,
    variables: dict[str, str] | None = None,
    source: str = "tf_config",
    framework: str = "",
    host: LocalHost | None = None,
    place: FilePlace | None = None,
    problems: tuple[Problem, ...] = (),
    opaque: tuple[str, ...] = (),
    machines: tuple[tuple[str, int], ...] = (),
    values: Mapping[str, str] | None = None,
    **more: str,
) -> ConfigFacts:
    """Return facts written by hand, in which rules state the cases that they are tested with.

    ``values`` and ``more`` are fields; their origin is the variable of the same name in capitals.
    """
    from allaboard.facts.configuration.cluster import Machine

    def value(text: str, variable: str, key: str = "") -> Value:
        return Value(text, Origin(variable=variable, key=key))

    spec = ClusterSpec(
        source="merged",
        framework=framework,
        cluster={
            job: tuple(
                value(text, "TF_CONFIG", f"cluster.{job}[{i}]") for i, text in enumerate(tasks)
            )
            for job, tasks in (cluster or {}).items()
        },
        job=value(task[0], "TF_CONFIG", "task.type") if task else None,
        index=value(str(task[1]), "TF_CONFIG", "task.index") if task else None,
        values={n: value(text, n.upper()) for n, text in {**(values or {}), **more}.items()},
        machines=tuple(Machine(value(name, "hostfile"), slots) for name, slots in machines),
        sources=(source,),
    )
    part = PartialSpec(
        source=source,
        framework=framework,
        cluster=spec.cluster,
        job=spec.job,
        index=spec.index,
        values=spec.values,
        machines=spec.machines,
        problems=problems,
    )
    return ConfigFacts(
        kind=kind,
        spec=spec,
        parts=(part,),
        problems=problems,
        variables={n: value(t, n) for n, t in (variables or {}).items()},
        opaque=frozenset(opaque),
        host=host,
        place=place,
    )
