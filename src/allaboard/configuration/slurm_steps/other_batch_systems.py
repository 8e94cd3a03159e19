"""Batch scripts of PBS and LSF, as far as their lines say how many nodes and tasks a job has.

Lines are those of qsub(1B) of PBS Professional (``-l select=2:mpiprocs=4``) and TORQUE (``-l
nodes=2:ppn=4``), and of bsub(1) of IBM Spectrum LSF (``-nnodes 2``; ``-n 8 -R "span[ptile=4]"``).
"""

from __future__ import annotations

import re

from allaboard.configuration.slurm_steps.step_request import StepRequest
from allaboard.facts import Material, Origin, Value

_CHUNK = r"(?P<nodes>\d{1,6})(?P<chunk>:[^\s,+]*)?(?=[\s,]|$)"
_PBS_SELECT = re.compile(rf"^#PBS\s.*?-l\s*select={_CHUNK}", re.MULTILINE)
_PBS_NODES = re.compile(rf"^#PBS\s.*?-l\s*nodes={_CHUNK}", re.MULTILINE)
_PBS_HOSTS = re.compile(
    r"^#PBS\s.*?-l\s*nodes=(?P<hosts>[A-Za-z][\w.-]*(?::[^\s,+]*)?(?:\+[A-Za-z][\w.-]*(?::[^\s,+]*)?)+)",
    re.MULTILINE,
)
"""Matches a request for hosts by their names: ``-l nodes=gpu1:ppn=4+gpu2:ppn=4``."""
_LSF_NODES = re.compile(r"^#BSUB\s.*?-nnodes\s+(?P<nodes>\d{1,6})(?P<chunk>)\s*$", re.MULTILINE)
_LSF_TASKS = re.compile(r"^#BSUB\s.*?-n\s+(?P<tasks>\d{1,6})\b", re.MULTILINE)
_LSF_PER_NODE = re.compile(r"^#BSUB\s.*?span\[ptile=(?P<each>\d{1,6})\]", re.MULTILINE)
_TASKS_OF_CHUNK = re.compile(r":mpiprocs=(\d{1,6})")


def read_other_request(material: Material) -> StepRequest | None:
    """Return what a batch script of PBS or LSF asks for; None if it is of neither, or does not say."""
    for pattern, flag in ((_PBS_SELECT, "select"), (_PBS_NODES, "nodes"), (_LSF_NODES, "-nnodes")):
        match = pattern.search(material.text)
        if match is not None:
            each = _TASKS_OF_CHUNK.search(match["chunk"] or "")
            return StepRequest(
                nodes=_value(material, match, "nodes", flag),
                tasks_per_node=Value(each[1], _origin(material, match, "mpiprocs"))
                if each
                else None,
            )
    named = _PBS_HOSTS.search(material.text)
    if named is not None:
        count = named["hosts"].count("+") + 1
        return StepRequest(nodes=Value(str(count), _origin(material, named, "nodes")))
    tasks, per_node = _LSF_TASKS.search(material.text), _LSF_PER_NODE.search(material.text)
    if tasks is None or per_node is None or int(tasks["tasks"]) % max(int(per_node["each"]), 1):
        return None
    nodes = int(tasks["tasks"]) // max(int(per_node["each"]), 1)
    return StepRequest(
        nodes=Value(str(nodes), _origin(material, tasks, "-n")),
        tasks_per_node=_value(material, per_node, "each", "ptile"),
    )


def _value(material: Material, match: re.Match[str], group: str, flag: str) -> Value:
    return Value(match[group], _origin(material, match, flag))


def _origin(material: Material, match: re.Match[str], flag: str) -> Origin:
    line = material.text.count("\n", 0, match.start()) + 1
    return Origin(flag=flag, file=material.file, line=line, column=1)
