"""Events of Kubernetes, as `kubectl get events` and `kubectl describe pod` list them."""

from __future__ import annotations

import re

import msgspec

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Heard, Testimony

_POD = r"(?:[^\n]{0,80}?\bpod/(?P<pod>[\w.-]{1,253}))?"
_SOURCE = (
    "its wording from the source of Kubernetes 1.20 to 1.34 (kubelet's eviction, kube-scheduler)"
)


def _evicted(what: str, resource: str, rule: str, fix: str) -> KnownMessage:
    """Return the event of a pod that had to leave its node because a resource there ran out."""
    return KnownMessage(
        key=f"The node was low on resource: {resource}",
        pattern=rf"\bEvicted\b{_POD}[^\n]{{0,80}}?The node was low on resource: {resource}",
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
        pattern=rf"\bFailedScheduling\b{_POD}[^\n]{{0,80}}?(?P<why>\d+/\d+ nodes are available: "
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
)
_NAME = re.compile(r"^Name: +(?P<pod>[\w.-]{1,253})$", re.MULTILINE)
_SCHEDULED = re.compile(
    r"\bScheduled\b(?:[^\n]{0,80}?\bpod/(?P<pod>[\w.-]{1,253}))?[^\n]{0,80}?Successfully assigned"
)
_NO_NODE = "finds no node for the pod"


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = find_known_messages(exhibit, MESSAGES)
    if not heard:
        return None
    named = _NAME.search(exhibit.text)
    scheduled = {m["pod"] or "" for m in _SCHEDULED.finditer(exhibit.text)}
    heard = tuple(
        _with_pod(h, named["pod"] if named else "")
        for h in heard
        if not (_NO_NODE in h.says and any(f"pod {pod}:" in h.says for pod in scheduled))
    )
    return Testimony(heard=heard) if heard else None


def _with_pod(heard: Heard, pod: str) -> Heard:
    """Return the message with the name of the pod that is described, if the event does not tell it."""
    if "the pod :" not in heard.says:
        return heard
    return msgspec.structs.replace(
        heard,
        says=heard.says.replace("the pod :", f"the pod {pod}:" if pod else "a pod:"),
        fix=heard.fix.replace("describe pod  ", f"describe pod {pod or 'POD'} "),
    )


READER = LogReader(read=read_log)
