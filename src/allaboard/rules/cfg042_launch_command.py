"""A launch command asks for what its hosts, its allocation or its own flags do not give.

## Why it matters
`srun`, `mpirun`, `deepspeed`, `accelerate launch` and `torchrun` are often put inside one another,
and each has its own way to count. torchrun that waits for 4 nodes in a step of 2 waits until it gives
up; `accelerate`'s num_processes counts all machines, not one; a launcher that is told of one node
and started on two trains twice, alone.

## What to do
Let one place hold the number of nodes, and take it from there:
`srun --ntasks-per-node=1 torchrun --nnodes=$SLURM_NNODES …`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import (
    Certainty,
    Claim,
    ConfigFacts,
    Evidence,
    Origin,
    PartialSpec,
    Problem,
    Stage,
    Value,
    facts_of,
)
from allaboard.spec import likely

_LAUNCHERS = ("torchrun", "accelerate", "deepspeed")


def check(facts: ConfigFacts) -> Iterator[Claim]:
    for problem in facts.problems:
        if problem.kind == "launch":
            yield Claim(
                summary=problem.said,
                evidence=(Evidence(problem.observed, str(problem.origin)),),
                fix=problem.correction,
                certainty=Certainty.LIKELY,
                where=problem.origin.place,
            )
    step, allocation = facts.part("srun"), facts.part("slurm")
    held = _nodes(allocation, most=True)
    if step is not None and held is not None:
        yield from _step(step, held)
    there = _nodes(step) if step is not None and "nnodes" in step.values else held
    for name in _LAUNCHERS:
        launcher = facts.part(name)
        if launcher is not None and there is not None and there[0]:
            yield from _launcher(name, launcher, there, step is not None)


def _nodes(part: PartialSpec | None, most: bool = False) -> tuple[int, Value] | None:
    """How many nodes a part has, the upper end of a range where ``most`` is set."""
    value = part.values.get("nnodes") if part is not None else None
    if value is None:
        return None
    text = value.text.rpartition("-")[2] if most else value.text.partition(":")[0]
    number = Value(text).integer
    return (number, value) if number else None


def _step(step: PartialSpec, held: tuple[int, Value]) -> Iterator[Claim]:
    asked = _nodes(step)
    if asked is not None and asked[0] > held[0]:
        name = asked[1].origin.flag
        yield likely(
            f"srun asks for {asked[0]} nodes, and the allocation has {held[0]}: srun refuses",
            (asked[1], held[1]),
            f"{name} {held[0]}" if len(name) == 2 else f"{name}={held[0]}",
        )


def _launcher(
    name: str, launcher: PartialSpec, there: tuple[int, Value], by_srun: bool
) -> Iterator[Claim]:
    value = launcher.values.get("nnodes")
    asked = _nodes(launcher)
    if asked is not None and asked[0] > there[0]:
        flag = asked[1].origin.flag or name
        yield likely(
            f"{name} waits for {asked[0]} nodes, and {there[0]} "
            f"{'is' if there[0] == 1 else 'are'} there",
            (asked[1], there[1]),
            f"{flag}=$SLURM_NNODES",
        )
    alone = value is None or value.text == "1"
    if name == "torchrun" and alone and by_srun and there[0] > 1:
        yield likely(
            f"torchrun is started on {there[0]} nodes and told of one: each of them trains alone",
            (*((value,) if value is not None else ()), there[1]),
            "torchrun --nnodes=$SLURM_NNODES --rdzv-backend=c10d "
            "--rdzv-endpoint=FIRST-HOST:29500 …",
        )


def _facts(allocation: str, step: dict[str, str] | None = None, **launcher: str) -> ConfigFacts:
    facts = facts_of("shell", source="slurm", nnodes=allocation)
    parts = list(facts.parts)
    for source, values in (("srun", step), ("torchrun", launcher)):
        if values is not None:
            flags = {n: Value(t, Origin(flag=f"--{n}")) for n, t in values.items()}
            parts.append(PartialSpec(source=source, values=flags))
    return ConfigFacts(kind="shell", spec=facts.spec, parts=tuple(parts))


_SLOTS = Problem(
    kind="launch",
    said="-np 8 asks for 8 processes, and -H has 4 slots",
    observed="-H a:2,b:2",
    correction="-H a:4,b:4   # or -np 4",
    origin=Origin(flag="-np", file="run.sh", line=3, column=8),
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ConfigFacts,
    check=check,
    fires_on={
        "slots": (facts_of("shell", problems=(_SLOTS,)), _SLOTS.said),
        "a larger step": (
            _facts("2", {"nnodes": "4"}, nnodes="2"),
            "srun asks for 4 nodes, and the allocation has 2: srun refuses",
        ),
        "more nodes than there are": (
            _facts("2", {}, nnodes="4"),
            "torchrun waits for 4 nodes, and 2 are there",
        ),
        "told of one": (
            _facts("2", {}, nproc_per_node="4"),
            "torchrun is started on 2 nodes and told of one: each of them trains alone",
        ),
    },
    silent_on={
        "as many": _facts("2", {}, nnodes="2"),
        "a smaller step": _facts("4", {"nnodes": "2"}, nnodes="2"),
        "a step of one": _facts("4", {"nnodes": "1"}, nnodes="1"),
        "elastic": _facts("4", {}, nnodes="2:4"),
        "a range of nodes": _facts("2-4", {"nnodes": "4"}, nnodes="4"),
        "a number by the shell": _facts("2", {}, nnodes=""),
        "a step by the shell": _facts("2", {"nnodes": ""}, nproc_per_node="4"),
    },
    since="0.1",
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
