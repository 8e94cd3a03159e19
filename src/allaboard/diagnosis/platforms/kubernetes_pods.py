"""The table of `kubectl get pods`: which pods of a job fail, and which only wait for them."""

from __future__ import annotations

import re
from typing import NamedTuple

from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Heard, Severity, Speaker, Testimony

_HEAD = re.compile(r"^[^\n]{0,60}?\bNAME\s+READY\s+STATUS\s+RESTARTS\b", re.MULTILINE)
_ROW = re.compile(
    r"^(?:(?P<namespace>[a-z0-9][\w-]{0,62}) +)?(?P<pod>[a-z0-9][a-z0-9.-]{2,252}) +(?P<ready>\d+/\d+) +"
    r"(?P<status>[A-Z][\w:/.-]{2,60}) +(?P<restarts>\d+)\b",
    re.MULTILINE,
)
_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_CONFIGURATION = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
_FAILED = (
    "CrashLoopBackOff",
    "Error",
    "OOMKilled",
    "StartError",
    "ContainerCannotRun",
    "Evicted",
    "Failed",
)
_MEMBER = re.compile(
    r"^(?P<job>.+)-(?P<role>master|chief|launcher|worker|ps|head|node)-(?P<index>\d{1,6})(?:-\w{5})?$"
)
MAX_NAMED = 3
"""Pods that are named."""
MAX_ROWS = 5000
"""Rows that are read."""


class _Pod(NamedTuple):
    """One row."""

    name: str
    status: str
    restarts: int
    line: int
    text: str


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    head = _HEAD.search(text) if "STATUS" in text else None
    begin = head.end() if head is not None else 0
    rows = [m for m, _ in zip(_ROW.finditer(text, begin), range(MAX_ROWS), strict=False)]
    # Without its head it is a table if nothing else was pasted.
    if head is None and (len(rows) < 2 or len(rows) < sum(map(bool, text.split("\n")))):
        return None
    pods = [
        _Pod(m["pod"], m["status"], int(m["restarts"]), text.count("\n", 0, m.start()), m[0])
        for m in rows
    ]
    pods = list({p.name: p for p in pods}.values())  # `-w` shows each change: the last one counts
    failing = [
        p for p in pods if p.status.removeprefix("Init:") in (*_FAILED, *_IMAGE, *_CONFIGURATION)
    ]
    if not failing:
        return None
    return Testimony(heard=(_heard(exhibit, failing, pods),))


def _heard(exhibit: Exhibit, failing: list[_Pod], pods: list[_Pod]) -> Heard:
    first = min(failing, key=lambda p: (_rank_of_role(p), p.line))
    names = ", ".join(p.name for p in failing[:MAX_NAMED])
    more = f" and {len(failing) - MAX_NAMED} more" if len(failing) > MAX_NAMED else ""
    waiting = [p for p in pods if p.status.startswith("Init:") and p not in failing]
    beside = f"; {len(waiting)} others still wait in their init container for it" if waiting else ""
    return Heard(
        rule="EXIT003" if first.status in _FAILED else "JOIN001",
        says=f"{names}{more}: {_meaning(first)} ({first.status}, {first.restarts} restarts){beside}",
        speakers=(Speaker(-1, first.text, exhibit.place_of_line(first.line)),),
        fix=_next_step(first),
        severity=Severity.ERROR,
        certainty=Certainty.CERTAIN,
        explains=("LOG012",),
        proves_not="why: the pod's own log says so",
    )


def _rank_of_role(pod: _Pod) -> int:
    """Return the place among failing pods: whom the others wait for comes first."""
    member = _MEMBER.match(pod.name)
    role = member["role"] if member is not None else ""
    return {"master": 0, "chief": 0, "launcher": 0, "head": 0, "": 2}.get(role, 1)


def _meaning(pod: _Pod) -> str:
    status = pod.status.removeprefix("Init:")
    if status in _IMAGE:
        return "Kubernetes cannot get its image"
    if status in _CONFIGURATION:
        return "Kubernetes cannot make its container"
    if status == "OOMKilled":
        return "its container went beyond its limit of memory"
    return "the pod's program fails again and again" if pod.restarts else "the pod's program failed"


def _next_step(pod: _Pod) -> str:
    status = pod.status.removeprefix("Init:")
    if status in (*_IMAGE, *_CONFIGURATION, "Evicted"):
        return f"kubectl describe pod {pod.name}   # its events say why"
    container = " -c INIT_CONTAINER" if pod.status.startswith("Init:") else ""
    previous = " --previous" if pod.restarts else ""
    return (
        f"kubectl logs {pod.name}{container} --all-containers{previous}   # the log of the run that ended; "
        f"kubectl describe pod {pod.name}"
    ).replace("-c INIT_CONTAINER --all-containers", "-c INIT_CONTAINER")


READER = LogReader(read=read_log)
