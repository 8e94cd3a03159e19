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

LEFT_EARLY = "EXIT004"
"""The rule of members that finished while others still waited for them."""
_TASK_NAME = re.compile(r"/job:(\w+)/(?:replica:\d+/)?task:(\d+)")
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
        says, fix = (_TASK_NAME.sub(_task_label, text) for text in (says, fix))
    return msgspec.structs.replace(heard, says=says, fix=fix, about=about)


def _task_label(match: re.Match[str]) -> str:
    return f"{'process' if match[1] == 'jax_worker' else match[1]} {match[2]}"


def _who(job: str, task: int) -> Who:
    return Who(index=task, rank=task) if job == "jax_worker" else Who(job=job, index=task)


READER = LogReader(read=read_log)
