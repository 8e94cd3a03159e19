"""IBM Spectrum LSF: the hosts of a job, and the numbers that its ``jsrun`` gives each task.

LSB_MCPU_HOSTS (``hostA 4 hostB 4``) and LSB_HOSTS (a host once for each slot) are those of the LSF reference;
the first is preferred, since LSF leaves the second out for large jobs. JSM_NAMESPACE_RANK, _SIZE and
_LOCAL_RANK are set by the Job Step Manager, as PyTorch Lightning's LSFEnvironment documents them.
LSB_DJOB_RANKFILE names a file that says the same as LSB_MCPU_HOSTS, and is not opened.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import pick_fields
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Machine, Material, PartialSpec, Problem, Value, whole_number
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES

_MAX_HOSTS = 100_000
"""Hosts of one job that are listed."""


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the hosts of the job, and the numbers that jsrun gave this task."""
    variables = material.variables
    values = pick_fields(variables, SOURCE_VARIABLES["lsf"].fields)
    counted, listed = variables.get("LSB_MCPU_HOSTS"), variables.get("LSB_HOSTS")
    slots: dict[str, int] = {}
    problems: list[Problem] = []
    origin = counted or listed
    if counted is not None and counted.text.strip():
        slots = _counted(counted, problems)
    elif listed is not None:
        for host in listed.text.split()[:_MAX_HOSTS]:
            slots[host] = slots.get(host, 0) + 1
    if values or slots or problems:
        yield PartialSpec(
            source="lsf",
            layer="allocation",
            values=values,
            machines=tuple(
                Machine(Value(host, origin.origin), count)
                for host, count in slots.items()
                if origin is not None
            ),
            problems=tuple(problems),
        )


def _counted(value: Value, problems: list[Problem]) -> dict[str, int]:
    """Return the slots of each host from ``hostA 4 hostB 4``."""
    items = value.text.split()[: 2 * _MAX_HOSTS]
    counts = [whole_number(item) for item in items[1::2]]
    if len(items) % 2 or any(count is None or count < 1 for count in counts):
        problems.append(
            Problem(
                kind="flags",
                message="LSB_MCPU_HOSTS is no list of hosts, each with its number of slots",
                observed=value.text[:80],
                correction='export LSB_MCPU_HOSTS="hostA 4 hostB 4"',
                origin=value.origin,
            )
        )
        return {}
    slots: dict[str, int] = {}
    for host, count in zip(items[::2], counts, strict=True):
        slots[host] = slots.get(host, 0) + (count or 0)
    return slots


SOURCE = ConfigurationSource(read=read_material)
