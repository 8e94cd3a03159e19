"""Merging of what several sources state into one spec; a disagreement names both origins."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.facts import ClusterSpec, Conflict, PartialSpec, Value
from allaboard.facts.address import canonical_address
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES

LAYERS = ("call", "launcher", "framework", "processes", "step", "allocation")
"""Kinds of statement, the one in force first: an argument overrules the environment, and what a
launcher gave its workers overrules the step (srun, mpirun) and the allocation that it runs in."""

PRECEDENCE = (
    *("literal", "accelerate", "deepspeed", "hostfile"),  # read from files and commands alone
    *SOURCE_VARIABLES,
    *("tf_flags", "mpirun", "srun", "srun_each"),
)
"""Sources of one layer, the one in force first; `allaboard.configuration.resolve` says why. Sources of other
packages come last."""
_PLACE = {source: place for place, source in enumerate(PRECEDENCE)}

_ADDRESSES = ("master_addr", "coordinator", "init_url", "rdzv_endpoint")
_COMPARED = {
    "call": ("processes", "framework"),
    "launcher": ("launcher",),
    "framework": ("framework",),
    "processes": ("processes",),
    "step": (),
    "allocation": (),
}
"""Layers that a statement is compared with. An allocation rightly has counts of its own: one Slurm
task a node that starts eight workers is no contradiction."""


def merge_parts(parts: Sequence[PartialSpec]) -> ClusterSpec:
    """Return one spec of all parts; for every field the first layer's first value is in force.

    Within a layer parts count in the order of PRECEDENCE, and parts of one source in the order given.
    """
    ordered = sorted(parts, key=_precedence)
    values: dict[str, Value] = {}
    layer_of: dict[str, str] = {}
    source_of: dict[str, str] = {}
    conflicts: list[Conflict] = []
    for part in ordered:
        for field, value in part.values.items():
            if field not in values:
                values[field], layer_of[field] = value, part.layer
                source_of[field] = part.source
            elif part.layer in _COMPARED.get(layer_of[field], ()):
                # Two calls of one script may stand in branches that exclude each other.
                if source_of[field] == part.source or _same(field, values[field], value):
                    continue
                conflicts.append(Conflict(field, values[field], value))
    listed = [p for p in ordered if p.cluster]
    first_part = listed[0] if listed else None
    for other_part in listed[1:]:
        if first_part is None or first_part.source == other_part.source:
            continue
        if other_part.layer in _COMPARED.get(first_part.layer, ()):
            conflicts += _clusters(first_part, other_part)
    named = next((p for p in ordered if p.index is not None or p.job is not None), None)
    return ClusterSpec(
        source="merged",
        framework=next((p.framework for p in ordered if p.framework), ""),
        cluster=first_part.cluster if first_part else {},
        job=named.job if named else None,
        index=named.index if named else None,
        values=values,
        machines=next((p.machines for p in ordered if p.machines), ()),
        problems=tuple(problem for p in ordered for problem in p.problems),
        conflicts=tuple(conflicts),
        sources=tuple(dict.fromkeys(p.source for p in ordered)),
    )


def _precedence(part: PartialSpec) -> tuple[int, int]:
    layer = LAYERS.index(part.layer) if part.layer in LAYERS else len(LAYERS)
    return layer, _PLACE.get(part.source, len(_PLACE))


def _same(field: str, value: Value, counterpart: Value) -> bool:
    if value.text.strip() == counterpart.text.strip():
        return True
    if value.integer is not None and value.integer == counterpart.integer:
        return True
    return field in _ADDRESSES and canonical_address(value.text) == canonical_address(
        counterpart.text
    )


def _clusters(part: PartialSpec, other_part: PartialSpec) -> list[Conflict]:
    """Return the first task in which two cluster lists differ, as a conflict."""
    theirs = {(job, index): value for job, index, value in other_part.tasks()}
    for job, index, value in part.tasks():
        counterpart = theirs.pop((job, index), None)
        if counterpart is None:
            first_extra = next(iter(theirs.values()), value)
            return [Conflict(f"cluster.{job}[{index}]", value, first_extra)]
        if canonical_address(value.text) != canonical_address(counterpart.text):
            return [Conflict(f"cluster.{job}[{index}]", value, counterpart)]
    for (job, index), value in theirs.items():
        first_task = next((v for _, _, v in part.tasks()), value)
        return [Conflict(f"cluster.{job}[{index}]", first_task, value)]
    return []
