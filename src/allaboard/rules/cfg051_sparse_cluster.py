"""A TFJob makes its operator write a sparse cluster, which TensorFlow does not read.

## Why it matters
With `enableDynamicWorker: true` the training operator gives each worker a TF_CONFIG that has
`sparseCluster` in place of `cluster`: only the parameter servers and the worker itself. TensorFlow's
resolvers read `cluster` alone, so the workers do not find each other.

## What to do
Remove the line from the manifest; the operator then writes the whole cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ManifestFacts, Origin, Role, Value, Workload


def check(facts: ManifestFacts) -> Iterator[Claim]:
    for workload in facts.workloads:
        if workload.kind != "TFJob" or workload.dynamic is None:
            continue
        if any("TF_CONFIG" in (*r.env, *r.computed) for r in workload.roles):
            continue  # its own
        yield Claim(
            summary=f"TFJob {workload.name} has enableDynamicWorker: its operator writes sparseCluster into "
            "TF_CONFIG, which TensorFlow does not read",
            evidence=(workload.dynamic.evidence,),
            fix="enableDynamicWorker: false   # or remove the line",
            certainty=Certainty.LIKELY,
            where=workload.dynamic.origin.editor_place,
        )


def _facts(dynamic: bool, kind: str = "TFJob") -> ManifestFacts:
    origin = Origin(key="enableDynamicWorker", file="job.yaml", line=5, column=24)
    role = Role(name="Worker", replicas=Value("2"))
    value = Value("true", origin) if dynamic else None
    return ManifestFacts(workloads=(Workload(kind=kind, name="ads", roles=(role,), dynamic=value),))


RULE = Rule(
    reads=ManifestFacts,
    check=check,
    fires_on={
        "a TFJob with `enableDynamicWorker`": (
            _facts(True),
            "TFJob ads has enableDynamicWorker: its operator writes sparseCluster into TF_CONFIG, which "
            "TensorFlow does not read",
        )
    },
    silent_on={"a TFJob without `enableDynamicWorker`": _facts(False)},
    unstaged="needs the training operator: the corpus in tests/corpus stages the manifest",
)
