"""Tasks by the names that their job gives them: chief, ps, evaluator, master, worker. Pure.

A file is called after its pod or task (``job-ps-1.log``). Beside a chief, a master or a ps, the number of a
worker is that of its own job, and no rank. What the log itself says of its task beats the file's name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

import msgspec

from allaboard.diagnosis.logs.node_local_ranks import PartReading, replace_rank
from allaboard.facts import Exhibit, Testimony

_JOBS = "ps|chief|master|evaluator|worker"
_NUMBERED = re.compile(
    rf"(?<![a-z0-9])(?P<job>{_JOBS})[-_.]?(?P<index>\d{{1,6}})(?![a-z0-9])", re.IGNORECASE
)
"""Matches a task in a name; what goes on with a letter is another word, as in a temporary folder's name."""
_SINGLE = re.compile(r"(?<![a-z0-9])(?P<job>chief|master|evaluator)(?![a-z0-9])", re.IGNORECASE)
"""Matches tasks of which a job has one."""
_OWN_TASK = (
    # TensorFlow's MultiWorkerMirroredStrategy, ParameterServerStrategy and Estimator.
    re.compile(r"task_type = '(?P<job>\w+)', task_id = (?P<index>\d+)"),
    re.compile(r"'_task_type': '(?P<job>\w+)', '_task_id': (?P<index>\d+)"),
)


def own_task(exhibit: Exhibit) -> str:
    """Return the task that the log calls its own, else that of the file's name or its folder's; "" for none.

    A log that calls several tasks its own is of none.
    """
    text = exhibit.text
    stated = {
        f"{m['job']} {int(m['index'])}" for pattern in _OWN_TASK for m in pattern.finditer(text)
    }
    if stated:
        return stated.pop() if len(stated) == 1 else ""
    return task_from_name(exhibit.name)


def task_from_name(file: str) -> str:
    """Return the task that the file's name states, or the folder that it is in; "" for none."""
    for name in (PurePosixPath(file).name, PurePosixPath(file).parent.name):
        matches = list(_NUMBERED.finditer(name))
        if matches:
            return f"{matches[-1]['job'].lower()} {int(matches[-1]['index'])}"
        if single := _SINGLE.search(name):
            return f"{single['job'].lower()} 0"
    return ""


def name_tasks(readings: Sequence[PartReading]) -> list[PartReading]:
    """Return the readings with the tasks of their files, if the job has other tasks than workers."""
    other_tasks = {r.task for r in readings if r.task and not r.task.startswith("worker ")}
    if not other_tasks:
        return list(readings)
    return [_with_task(r) if _is_of_task(r) else r for r in readings]


def _is_of_task(reading: PartReading) -> bool:
    """Return True if nothing in the file says that its task has another rank than its number."""
    if not reading.task or reading.part.labelled or reading.part.host or reading.part.local >= 0:
        return False
    return reading.part.rank < 0 or reading.part.rank == int(reading.task.rpartition(" ")[2])


def _with_task(reading: PartReading) -> PartReading:
    part = msgspec.structs.replace(reading.part, rank=-1)
    testimony = tuple(
        _task_testimony(replace_rank(t, reading.part, part), reading.task)
        for t in reading.testimony
    )
    return msgspec.structs.replace(reading, part=part, testimony=testimony)


def _task_testimony(testimony: Testimony, task: str) -> Testimony:
    """Return the testimony with the task for each process of which nothing else is known."""
    return msgspec.structs.replace(
        testimony,
        glimpses=tuple(
            msgspec.structs.replace(g, task=task) if g.rank < 0 and not g.role and not g.host else g
            for g in testimony.glimpses
        ),
    )
