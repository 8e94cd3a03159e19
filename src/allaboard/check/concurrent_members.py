"""The processes that one shell script starts beside each other: one member's view each.

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
"""Variables of which one, set before a command, says that it is a member."""
_TASK = re.compile(r"--?(?:task_index|task_id|job_name)[= ](\S+)")


def concurrent_members(script: Script, file: str) -> list[tuple[str, Material]]:
    """The members that run at the same time, by the line of each; none where there are fewer than
    two, or where only a run could tell who one of them is."""
    member_processes = [p for p in script.processes if p.own & set(IDENTITY_VARIABLES) or _task(p)]
    if len(member_processes) < 2 or not all(p.background for p in member_processes[:-1]):
        return []
    loops = counting_loops(script.flow)
    if any(step.processes and loops & set(step.loops) for step in script.flow):
        return []
    if any(
        p.own & p.environment.opaque & set(IDENTITY_VARIABLES) or OPAQUE in _task(p)
        for p in member_processes
    ):
        return []
    return [(_name(p, file), process_material(p, file)) for p in member_processes]


def _task(process: Process) -> str:
    """The flags of a script of TensorFlow 1 that say which task this is; "" where it has none."""
    command = " ".join(w.text for w in process.command)
    return " ".join(m.group() for m in _TASK.finditer(command))


def _name(process: Process, file: str) -> str:
    line = process.command[0].origin.line if process.command else 0
    rank = process.environment.variables.get("RANK")
    return f"{file}:{line}" + (f" (RANK={rank.text})" if rank is not None else "")


def process_material(process: Process, file: str) -> Material:
    """What one process of a script is told: its own command with all variables that it inherits."""
    environment = process.environment
    return Material(
        kind="shell",
        file=file,
        variables=environment.variables,
        opaque=frozenset(environment.opaque),
        commands=(process.command,),
    )


def group_members(views: list[ConfigFacts]) -> list[Pasted]:
    """The members by the job that they belong to.

    One job where everybody is another one; where two are the same, a script that starts a job on
    each half of the GPUs is told from a mistake by their meeting places.
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
    """Where the members of this spec meet."""
    address = [spec.values[f].text for f in ("master_addr", "master_port") if f in spec.values]
    return (*address, *sorted(v.text for _, _, v in spec.tasks()))
