"""Events of Kubernetes, as `kubectl get events` and `kubectl describe pod` list them."""

from __future__ import annotations

import re

import msgspec

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.kubernetes_event_messages import EVENT_MESSAGES, POD
from allaboard.facts import Certainty, Exhibit, Heard, Testimony

_SOURCE = (
    "its wording from the source of Kubernetes 1.20 to 1.34 (kubelet's eviction, kube-scheduler)"
)


def _evicted(what: str, resource: str, rule: str, fix: str) -> KnownMessage:
    """Return the event of a pod that had to leave its node because a resource there ran out."""
    return KnownMessage(
        key=f"The node was low on resource: {resource}",
        pattern=rf"\bEvicted\b{POD}[^\n]{{0,80}}?The node was low on resource: {resource}",
        rule=rule,
        says=f"Kubernetes evicted the pod {{pod}}: its node ran out of {what}",
        fix=fix,
        certainty=Certainty.CERTAIN,
        explains=("EXIT001", "EXIT010"),
        sample=f"4m11s  Warning  Evicted  pod/train-0  The node was low on resource: {resource}. Container",
        source=_SOURCE,
    )


MESSAGES = (
    _evicted(
        "memory",
        "memory",
        "RES001",
        "kubectl describe pod {pod}   # give it requests.memory = limits.memory of what it needs: who uses "
        "more than its request is evicted first; smaller batches, fewer DataLoader workers",
    ),
    _evicted(
        "local disk",
        "ephemeral-storage",
        "RES004",
        "kubectl describe pod {pod}   # request ephemeral-storage, or write caches and checkpoints to a "
        "volume (HF_HOME, TMPDIR)",
    ),
    KnownMessage(
        key="FailedScheduling",
        pattern=rf"\bFailedScheduling\b{POD}[^\n]{{0,80}}?(?P<why>\d+/\d+ nodes are available: "
        rf"[^\n]{{1,160}}?)"
        r"(?:\. preemption|\.?\s*$|\.?\s*\n)",
        rule="JOIN001",
        says="Kubernetes finds no node for the pod {pod}: {why}",
        fix="kubectl describe nodes | grep -A8 'Allocated resources'   # ask for less, add nodes, or add the "
        "tolerations and labels that the message names; a job of N pods wants them all at once (gang "
        "scheduling)",
        certainty=Certainty.CERTAIN,
        sample="3s  Warning  FailedScheduling  pod/train-worker-1  0/3 nodes are available: 3 Insufficient "
        "nvidia.com/gpu.",
        source=_SOURCE,
    ),
    *EVENT_MESSAGES,
)
_NAME = re.compile(r"^Name: +(?P<pod>[\w.-]{1,253})$", re.MULTILINE)
_SCHEDULED = re.compile(
    r"\bScheduled\b(?:[^\n]{0,80}?\bpod/(?P<pod>[\w.-]{1,253}))?[^\n]{0,80}?Successfully assigned"
)
_STARTED = re.compile(rf"\bStarted\b{POD}[^\n]{{0,80}}?Started container")
_NO_NODE = "finds no node for the pod"
_NOT_STARTED = "JOIN001"
"""The rule of events that count until the container of the pod has started."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = find_known_messages(exhibit, MESSAGES)
    if not heard:
        return None
    named = _NAME.search(exhibit.text)
    scheduled = {m["pod"] or "" for m in _SCHEDULED.finditer(exhibit.text)}
    started = {m["pod"] or "" for m in _STARTED.finditer(exhibit.text)}
    counting = [h for h in heard if not _is_over(h, scheduled if _NO_NODE in h.says else started)]
    # Kubernetes repeats what holds up a pod, in other words: the first event of a kind says most.
    first_by_kind: dict[str, Heard] = {}
    for message in sorted(counting, key=lambda h: h.speakers[0].place.line):
        first_by_kind.setdefault(message.says.partition(": ")[0], message)
    pod = named["pod"] if named else ""
    about_pod = tuple(_with_pod(h, pod) for h in first_by_kind.values())
    return Testimony(heard=about_pod) if about_pod else None


def _is_over(heard: Heard, pods: set[str]) -> bool:
    """Return True for an event that kept one of these pods from its start, which came all the same."""
    return heard.rule == _NOT_STARTED and any(f"pod {pod}:" in heard.says for pod in pods)


def _with_pod(heard: Heard, pod: str) -> Heard:
    """Return the message with the name of the pod that is described, if the event does not tell it."""
    if "the pod :" not in heard.says:
        return heard
    return msgspec.structs.replace(
        heard,
        says=heard.says.replace("the pod :", f"the pod {pod}:" if pod else "a pod:"),
        fix=re.sub(r"\b(pod|logs)  ", rf"\1 {pod or 'POD'} ", heard.fix),
    )


READER = LogReader(read=read_log)
