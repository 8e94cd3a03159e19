"""A service mesh puts a proxy into the pods of a training job.

## Why it matters
Istio, Linkerd and Kuma inject a container that takes over the pod's connections. Workers that connect to
each other by address before the proxy is ready, or on ports that the mesh does not know, are refused or
reset; and because the proxy never ends, the pod of a finished worker stays, and the job never completes.

## What to do
Switch the injection off in the pod template of every group of replicas, or run the job in a namespace
without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Origin, Value
from allaboard.facts.configuration.manifest import ManifestFacts, Namespace, Role, Workload

_OPERATOR_KINDS = frozenset(
    (
        "TFJob", "PyTorchJob", "MPIJob", "XGBoostJob", "PaddleJob", "TrainJob", "JobSet", "LeaderWorkerSet",
        "VolcanoJob",
    )
)  # fmt: skip
"""Kinds whose pods train together."""


class _Mesh(NamedTuple):
    """How one service mesh decides about the injection of its proxy."""

    namespace_marks: tuple[tuple[str, frozenset[str]], ...]
    """Labels or annotations of a namespace, each with the values that switch it on; no values for any."""
    pod_mark: str
    """Label or annotation of a pod that decides for this pod."""
    on: frozenset[str]
    """Values of that mark that switch it on."""
    off: str
    """The value that switches it off."""


_MESHES = {
    "Istio": _Mesh(
        (("istio-injection", frozenset(("enabled",))), ("istio.io/rev", frozenset())),
        "sidecar.istio.io/inject",
        frozenset(("true", "yes", "y", "on")),
        "false",
    ),
    "Linkerd": _Mesh(
        (("linkerd.io/inject", frozenset(("enabled", "ingress"))),),
        "linkerd.io/inject",
        frozenset(("enabled", "ingress")),
        "disabled",
    ),
    "Kuma": _Mesh(
        (("kuma.io/sidecar-injection", frozenset(("enabled", "true"))),),
        "kuma.io/sidecar-injection",
        frozenset(("enabled", "true")),
        "disabled",
    ),
}
_TUNED = ("traffic.sidecar.istio.io/", "config.linkerd.io/skip-", "proxy.istio.io/config")
"""Beginnings of annotations by which somebody has fitted the mesh to the job."""


def check(facts: ManifestFacts) -> Iterator[Claim]:
    for workload in facts.workloads:
        if workload.kind not in _OPERATOR_KINDS or _pod_count(workload) < 2:
            continue
        namespace = next(
            (n for n in facts.namespaces if n.name == (workload.namespace or "default")), None
        )
        for name, mesh in _MESHES.items():
            cause = _namespace_mark(mesh, namespace)
            injected = [r for r in workload.roles if _is_injected(r, mesh, cause)]
            if injected:
                yield _claim(workload, name, mesh, injected, cause)


def _pod_count(workload: Workload) -> int:
    return sum(r.replicas.integer or 0 for r in workload.roles)


def _namespace_mark(mesh: _Mesh, namespace: Namespace | None) -> Value | None:
    for key, values in mesh.namespace_marks:
        value = namespace.marks.get(key) if namespace is not None else None
        if value is not None and (value.text in values if values else bool(value.text)):
            return value
    return None


def _is_injected(role: Role, mesh: _Mesh, cause: Value | None) -> bool:
    marks = {**role.annotations, **role.labels}
    own_mark = marks.get(mesh.pod_mark, "").lower()
    if any(key.startswith(_TUNED) for key in marks):
        return False
    return own_mark in mesh.on or (not own_mark and cause is not None)


def _claim(
    workload: Workload, name: str, mesh: _Mesh, injected: list[Role], cause: Value | None
) -> Claim:
    role = injected[0]
    groups = " and ".join(r.name for r in injected if r.name)
    evidence = cause or Value(f"{mesh.pod_mark}: in the pod template", role.origin)
    reason = (
        "its namespace asks for that" if cause is not None else "its pod template asks for that"
    )
    return Claim(
        summary=f"{name} puts a proxy into the pods of {workload.kind} {workload.name}: {reason}",
        evidence=(evidence.evidence, Value(groups or workload.kind, workload.origin).evidence),
        fix=f'annotations: {{{mesh.pod_mark}: "{mesh.off}"}}   # metadata of the pod template'
        + (f" of {groups}" if groups else ""),
        certainty=Certainty.LIKELY,
        where=role.origin.editor_place,
    )


def _facts(
    mark: dict[str, str], annotations: dict[str, str] | None = None, namespace: str = "team"
) -> ManifestFacts:
    origin = Origin(file="job.yaml", line=4)
    role = Role(
        name="Worker",
        replicas=Value("3"),
        annotations=annotations or {},
        origin=Origin(file="job.yaml", line=12),
    )
    job = Workload(kind="PyTorchJob", name="lm", namespace=namespace, roles=(role,), origin=origin)
    marks = {k: Value(t, origin) for k, t in mark.items()}
    return ManifestFacts(workloads=(job,), namespaces=(Namespace(name="team", marks=marks),))


_ISTIO = {"istio-injection": "enabled"}
RULE = Rule(
    reads=ManifestFacts,
    check=check,
    fires_on={
        "the namespace asks Istio for a proxy": (
            _facts(_ISTIO),
            "Istio puts a proxy into the pods of PyTorchJob lm: its namespace asks for that",
        ),
        "the namespace asks Linkerd for a proxy": (
            _facts({"linkerd.io/inject": "enabled"}),
            "Linkerd puts a proxy into the pods of PyTorchJob lm: its namespace asks for that",
        ),
        "the pod template asks Istio for a proxy": (
            _facts({}, {"sidecar.istio.io/inject": "true"}),
            "Istio puts a proxy into the pods of PyTorchJob lm: its pod template asks for that",
        ),
    },
    silent_on={
        "the pod template switches the proxy off": _facts(
            _ISTIO, {"sidecar.istio.io/inject": "false"}
        ),
        "the job is in another namespace": _facts(_ISTIO, namespace="other"),
        "the namespace has injection disabled": _facts({"istio-injection": "disabled"}),
        "Istio's ambient mode, which puts no proxy into the pods": _facts(
            {"istio.io/dataplane-mode": "ambient"}
        ),
        "the pod template keeps the job's port away from the proxy": _facts(
            _ISTIO, {"traffic.sidecar.istio.io/excludeOutboundPorts": "23456"}
        ),
    },
    unstaged="needs a cluster with a service mesh: the corpus in tests/corpus stages the manifests",
)
