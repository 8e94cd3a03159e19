"""A StatefulSet starts its pods one after the other, but a pod is ready only once all of them train.

## Why it matters
By default (`podManagementPolicy: OrderedReady`) pod 1 is started when pod 0 is ready. Where the
readinessProbe asks for something that comes with the training (a file that the first step writes), pod 0
waits in its init for pods that are never started. A probe of the meeting port passes in pod 0 alone, where
the store listens: pod 1 never becomes ready, and pod 2 is never started.

## What to do
`podManagementPolicy: Parallel`. A headless Service has no name for a pod that is not ready, either: give it
`publishNotReadyAddresses: true`, or leave the readinessProbe out. Nobody sends requests to a rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ManifestFacts, Origin, Role, Severity, Value, Workload

_NNODES_FLAG = re.compile(r"--nnodes[= ]([0-9]+)(?![:0-9])")
_MEETING_PORT = re.compile(
    r"--(?:master[-_]port[= ]|rdzv[-_]endpoint[= ]\S+?:)([0-9]+)|\bMASTER_PORT=([0-9]+)"
)
_ASKS_FOR_FILE = re.compile(r"(?:\btest|\[)\s+-[efs]\s+\S|\b(?:cat|ls|stat|grep|head|tail|find)\s")
_NAMES_TRAINING = re.compile(
    r"(?<![a-z])(?:steps?|epochs?|loss(?:es)?|checkpoints?|ckpts?|progress|iterations?"
    r"|train(?:ing)?[-_.]?(?:started|began|begun|running))(?![a-z])",
    re.IGNORECASE,
)
"""Words in the names of files that exist only once the training runs."""


def check(facts: ManifestFacts) -> Iterator[Claim]:
    for workload in facts.workloads:
        if workload.kind != "StatefulSet" or workload.at_once:
            continue
        for role in workload.roles:
            pod_count = role.replicas.integer
            if pod_count is not None and pod_count > 1 and _is_one_job(role, pod_count):
                yield from _check_probe(workload, role, pod_count)


def _is_one_job(role: Role, pod_count: int) -> bool:
    """Return True if the pods are members of one job, which begins when the last of them has joined."""
    size = role.env.get("WORLD_SIZE")
    if size is not None and size.integer is not None and size.integer >= pod_count:
        return True
    node_count = _NNODES_FLAG.search(_join_arguments(role.command))
    return node_count is not None and int(node_count[1][:6]) == pod_count


def _check_probe(workload: Workload, role: Role, pod_count: int) -> Iterator[Claim]:
    ready_port = role.ready_port
    if ready_port is not None and ready_port.text in _meeting_ports(role) and pod_count > 2:
        yield _claim(
            workload,
            ready_port,
            f"a pod becomes ready only once port {ready_port.text} is open, which only rank 0 opens: "
            "pod 2 is never started",
            Severity.ERROR,
        )
    text = _join_arguments(role.ready_command)
    if _ASKS_FOR_FILE.search(text) and _NAMES_TRAINING.search(text):
        probe_value = Value(text[:100], role.ready_command[0].origin)
        yield _claim(
            workload,
            probe_value,
            "a pod seems to become ready only once it trains: pod 1 is never started",
            Severity.WARNING,
        )


def _claim(workload: Workload, probe_value: Value, consequence: str, severity: Severity) -> Claim:
    return Claim(
        summary=f"StatefulSet {workload.name} starts its pods one after the other, but {consequence}",
        evidence=(
            probe_value.evidence,
            Value("podManagementPolicy: OrderedReady", workload.origin).evidence,
        ),
        fix="podManagementPolicy: Parallel   # and publishNotReadyAddresses: true in its Service",
        severity=severity,
        certainty=Certainty.LIKELY,
        where=probe_value.origin.editor_place,
    )


def _meeting_ports(role: Role) -> set[str]:
    """Return the literal ports at which the members meet."""
    ports = {a or b for a, b in _MEETING_PORT.findall(_join_arguments(role.command))}
    master_port = role.env.get("MASTER_PORT")
    return ports | ({master_port.text} if master_port is not None else set())


def _join_arguments(arguments: tuple[Value, ...]) -> str:
    return " ".join(w.text for w in arguments)


def _facts(
    probe: str = "", port: str = "", pod_count: str = "4", at_once: bool = False, size: str = "4"
) -> ManifestFacts:
    origin = Origin(key="readinessProbe", file="train.yaml", line=30)
    probe_arguments = tuple(Value(w, origin) for w in probe.split())
    role = Role(
        name="",
        replicas=Value(pod_count),
        env={"WORLD_SIZE": Value(size), "MASTER_PORT": Value("29500")},
        ready_command=probe_arguments,
        ready_port=Value(port, origin) if port else None,
    )
    workload = Workload(kind="StatefulSet", name="train", roles=(role,), at_once=at_once)
    return ManifestFacts(workloads=(workload,))


_STEP_FILE_PROBE = "test -f /tmp/step"
RULE = Rule(
    reads=ManifestFacts,
    check=check,
    fires_on={
        "a readiness probe for a file that the first training step writes": (
            _facts(_STEP_FILE_PROBE),
            "StatefulSet train starts its pods one after the other, but a pod seems to become ready only "
            "once it trains: pod 1 is never started",
        ),
        "a readiness probe on the port that only rank 0 opens": (
            _facts(port="29500"),
            "StatefulSet train starts its pods one after the other, but a pod becomes ready only once port "
            "29500 is open, which only rank 0 opens: pod 2 is never started",
        ),
    },
    silent_on={
        "a StatefulSet that starts all pods at once": _facts(
            _STEP_FILE_PROBE, "29500", at_once=True
        ),
        "pods without a readiness probe": _facts(),
        "a readiness probe for a file that need not wait for training": _facts(
            "test -f /tmp/ready"
        ),
        "a readiness probe that asks whether the process runs": _facts("pgrep -f train.py"),
        "a readiness probe on another port than MASTER_PORT": _facts(port="8080"),
        "two pods with a probe on MASTER_PORT: rank 0 opens it before the second starts": _facts(
            port="29500", pod_count="2", size="2"
        ),
        "a StatefulSet of one pod": _facts(_STEP_FILE_PROBE, "29500", pod_count="1", size="1"),
        "four pods that each train alone (WORLD_SIZE=1)": _facts(
            _STEP_FILE_PROBE, "29500", size="1"
        ),
    },
)
