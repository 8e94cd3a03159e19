"""The processes that one shell script starts side by side, each as one member's view of the job.

``RANK=0 python train.py & RANK=1 python train.py &`` is how small jobs are started by hand.
"""

from __future__ import annotations

import re

import msgspec

from allaboard.check.concurrent_commands import counting_loops
from allaboard.facts import OPAQUE, ClusterSpec, ConfigFacts, Material, Pasted
from allaboard.facts.configuration.source_variables import RANK_VARIABLES
from allaboard.formats.shell.script import Process, Script

IDENTITY_VARIABLES = RANK_VARIABLES
"""Variables that make a command a member of a job, if one of them is set before it."""
_TASK = re.compile(r"--?(?:task_index|task_id|job_name)[= ](\S+)")


def concurrent_members(script: Script, file: str) -> list[tuple[str, Material]]:
    """Return the members that run at the same time, by the line of each. It is empty if there are fewer
    than two, or if only a run could tell which member one of them is."""
    member_processes = [
        p for p in script.processes if p.own_names & set(IDENTITY_VARIABLES) or _task(p)
    ]
    if len(member_processes) < 2 or not all(p.is_background for p in member_processes[:-1]):
        return []
    loops = counting_loops(script.flow)
    if any(step.processes and loops & set(step.loops) for step in script.flow):
        return []
    if any(
        p.own_names & p.environment.opaque & set(IDENTITY_VARIABLES) or OPAQUE in _task(p)
        for p in member_processes
    ):
        return []
    return [(_name(p, file), process_material(p, file)) for p in member_processes]


def _task(process: Process) -> str:
    """Return the flags of a TensorFlow 1 script that say which task this is; "" if it has none."""
    command = " ".join(w.text for w in process.command)
    return " ".join(m.group() for m in _TASK.finditer(command))


def _name(process: Process, file: str) -> str:
    line = process.command[0].origin.line if process.command else 0
    rank = process.environment.variables.get("RANK")
    return f"{file}:{line}" + (f" (RANK={rank.text})" if rank is not None else "")


def process_material(process: Process, file: str) -> Material:
    """Return what one process of a script is given: its own command, with all variables that it
    inherits."""
    environment = process.environment
    return Material(
        kind="shell",
        file=file,
        variables=environment.variables,
        opaque=frozenset(environment.opaque),
        commands=(process.command,),
    )


def group_members(views: list[ConfigFacts]) -> list[Pasted]:
    """Return the members by the job that they belong to.

    They are one job if all of them are different members. If two are the same, the meeting places
    distinguish a script that starts a job on each half of the GPUs from a mistake.
    """
    names = [_identity(v.spec) for v in views]
    groups: dict[tuple[str, ...], list[ConfigFacts]] = {}
    for view in views:
        meeting = meeting_place(view.spec) if len(set(names)) < len(names) else ()
        groups.setdefault(meeting, []).append(view)
    return [
        Pasted(specs=tuple((v.subject, v.spec) for v in group))
        for group in groups.values()
        if len(group) > 1
    ]


def _identity(spec: ClusterSpec) -> bytes:
    return msgspec.json.encode(
        (
            spec.job.text if spec.job is not None else "",
            spec.index.text if spec.index is not None else "",
            spec.values["rank"].text if "rank" in spec.values else "",
        )
    )


def meeting_place(spec: ClusterSpec) -> tuple[str, ...]:
    """Return what says where the members of this spec meet."""
    address = [spec.values[f].text for f in ("master_addr", "master_port") if f in spec.values]
    return (*address, *sorted(v.text for _, _, v in spec.tasks()))
