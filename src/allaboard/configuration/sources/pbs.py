"""PBS (OpenPBS, PBS Professional, Torque): the hosts of a job, and which of them a task runs on.

PBS_NODENUM is the number of the task's host, as pbsdsh(1) documents it. PBS_NODEFILE names a file with a line
for each slot, which only the job's hosts have: it is read where the caller allows it. PBS_NUM_NODES is
Torque's.

Not read: PBS_TASKNUM counts the processes that the task manager has ever started, in no order of ranks;
PBS_NUM_PPN counts cores, not ranks. The ranks of a PBS job are those of its MPI launcher.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from allaboard.configuration.spec import pick_fields
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Machine, Material, Origin, PartialSpec, Value
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES

_NODEFILE = "PBS_NODEFILE"
_MAX_LINES = 100_000
"""Lines of a node file that are read."""


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the number of this host, and the hosts if their file was read."""
    values = pick_fields(material.variables, SOURCE_VARIABLES["pbs"].fields)
    named = material.variables.get(_NODEFILE)
    lines = material.named_files.get(_NODEFILE, "").split("\n", _MAX_LINES)[:_MAX_LINES]
    slots = Counter(line.strip() for line in lines if line.strip())
    origin = Origin(variable=_NODEFILE, key=named.text if named is not None else "")
    if values or slots:
        yield PartialSpec(
            source="pbs",
            layer="allocation",
            values=values,
            machines=tuple(Machine(Value(host, origin), count) for host, count in slots.items()),
        )


SOURCE = ConfigurationSource(read=read_material)
