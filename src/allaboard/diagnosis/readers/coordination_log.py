"""Messages of the coordination service of TensorFlow and JAX about tasks that are lost, doubled or late.

TensorFlow, and JAX before 0.8, write a task's whole name; JAX since then writes its number only.
"""

from __future__ import annotations

import re

import msgspec

from allaboard.analysis.log_messages import find_known_messages
from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.coordination_messages import MESSAGES
from allaboard.facts import Exhibit, Heard, Testimony, Who
from allaboard.facts.rank_sets import name_ranks

LEFT_EARLY = "EXIT004"
"""The rule of members that finished while others still waited for them."""
_TASK = r"/job:(\w+)/(?:replica:\d+/)?task:(\d+)"
_TASK_NAME = re.compile(_TASK)
_TASK_LIST = re.compile(rf"{_TASK}(?:, /job:\w+/(?:replica:\d+/)?task:\d+)*")
_LOOPBACK_LEADER = re.compile(r"answered no more at (127\.[\d.]+|::1|localhost):\d")


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = find_known_messages(exhibit, MESSAGES)
    return Testimony(heard=tuple(_with_loopback(_join_lines(h)) for h in heard)) if heard else None


def _with_loopback(heard: Heard) -> Heard:
    """Return a leader that was not reached with what a loopback address means, if it is one."""
    match = _LOOPBACK_LEADER.search(heard.says)
    if match is None:
        return heard
    return msgspec.structs.replace(
        heard,
        says=f"{heard.says}; {match[1]} is on every host that host itself",
        fix=f"coordinator_address must name process 0's host, if not all processes are on one; on one host: "
        f"{heard.fix}",
    )


def _join_lines(heard: Heard) -> Heard:
    """Return the message in one line: several tasks are listed one a line."""
    says, fix = heard.says.replace("\n", ", "), heard.fix.replace("\n", ", ")
    about = heard.about
    if names := _TASK_NAME.findall(says):
        about = tuple(_who(job, int(task)) for job, task in names)
        says, fix = (_TASK_LIST.sub(_label_tasks, text) for text in (says, fix))
    return msgspec.structs.replace(heard, says=says, fix=fix, about=about)


def _label_tasks(match: re.Match[str]) -> str:
    """Return the tasks of a list: "ps 0, worker 2", and JAX's as "processes 1-3 and 5"."""
    tasks = _TASK_NAME.findall(match[0])
    labels = [f"{job} {number}" for job, number in tasks if job != "jax_worker"]
    processes = {int(number) for job, number in tasks if job == "jax_worker"}
    if processes:
        listed = name_ranks(processes).partition(" ")[2]
        labels.append(f"process{'es' if len(processes) > 1 else ''} {listed}")
    return ", ".join(labels)


def _who(job: str, task: int) -> Who:
    return Who(index=task, rank=task) if job == "jax_worker" else Who(job=job, index=task)


READER = LogReader(read=read_log)
