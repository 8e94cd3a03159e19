"""A launch command does not match its hosts, its allocation or its own flags.

## Why it matters
`srun`, `mpirun`, `deepspeed`, `accelerate launch` and `torchrun` are often nested, and each counts in its own
way. A torchrun that waits for 4 nodes in a step of 2 waits until it gives up; `accelerate`'s num_processes
counts all machines, not one; a launcher that is set up for one node but started on two makes two separate
jobs. What the shell of each task works out by itself (`srun bash -c '… $(hostname) …'`, `$RANDOM`) is
another address or port on each; what the shell of the batch script fills in before the step (`$SLURM_PROCID`
in double quotes) is the same for all. A script that asks for other nodes than the job has, or spawns
processes in every task, contradicts Slurm's counts. A hostfile that the command names may have too few slots
or hosts, or lack a host that the command asks for; it is read if it is given too, or lies beside the script.

## What to do
Let one place hold the number of nodes, and take it from there: `srun --ntasks-per-node=1 torchrun
--nnodes=$SLURM_NNODES …`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.configuration.config_problems import problem_claims
from allaboard.configuration.spec import likely_mistake
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Origin, PartialSpec, Problem, Severity, Value
from allaboard.facts.configuration.config_facts import ConfigFacts, sample_config_facts

_LAUNCHERS = ("torchrun", "accelerate", "deepspeed")


def check(facts: ConfigFacts) -> Iterator[Claim]:
    yield from problem_claims(facts.problems, "launch", Certainty.LIKELY)
    yield from problem_claims(facts.problems, "launch.warning", Certainty.LIKELY, Severity.WARNING)
    step, allocation = facts.part_of_source("srun"), facts.part_of_source("slurm")
    allocated = _node_count(allocation, most=True)
    if step is not None and allocated is not None:
        yield from _check_step(step, allocated)
    step_nodes = _node_count(step) if step is not None and "nnodes" in step.values else allocated
    by_srun = step.values.get("launcher") if step is not None else None
    for name in _LAUNCHERS:
        launcher = facts.part_of_source(name)
        if launcher is None:
            continue
        if (
            by_srun is not None
            and by_srun.text == name
            and step_nodes is not None
            and step_nodes[0] > 1
        ):
            yield from _check_each_node(name, launcher, step_nodes)
        available = step_nodes or allocated
        if available is not None:
            yield from _check_launcher(name, launcher, available)


def _node_count(part: PartialSpec | None, most: bool = False) -> tuple[int, Value] | None:
    """Return a part's number of nodes and its value; of a range the lower end, or the upper if ``most``."""
    value = part.values.get("nnodes") if part is not None else None
    if value is None:
        return None
    text = value.text.rpartition("-")[2] if most else value.text.partition(":")[0]
    number = Value(text).integer
    return (number, value) if number else None


def _check_step(step: PartialSpec, allocated: tuple[int, Value]) -> Iterator[Claim]:
    requested = _node_count(step)
    if requested is not None and requested[0] > allocated[0]:
        name = requested[1].origin.flag
        yield likely_mistake(
            f"srun asks for {requested[0]} nodes, but the allocation has {allocated[0]}: srun fails",
            (requested[1], allocated[1]),
            f"{name} {allocated[0]}" if len(name) == 2 else f"{name}={allocated[0]}",
        )


def _check_launcher(
    name: str, launcher: PartialSpec, available: tuple[int, Value]
) -> Iterator[Claim]:
    requested = _node_count(launcher)
    if requested is not None and requested[0] > available[0]:
        flag = requested[1].origin.flag or name
        yield likely_mistake(
            f"{name} waits for {requested[0]} nodes, but there "
            f"{'is' if available[0] == 1 else 'are'} {available[0]}",
            (requested[1], available[1]),
            f"{flag}=$SLURM_NNODES",
        )


def _check_each_node(
    name: str, launcher: PartialSpec, step_nodes: tuple[int, Value]
) -> Iterator[Claim]:
    """Report a launcher that srun starts on several nodes by one command, and that does not expect that."""
    count, nodes_value = step_nodes
    value, node = launcher.values.get("nnodes"), launcher.values.get("node_rank")
    max_nodes = Value(value.text.rpartition(":")[2]).integer if value is not None else 1
    if max_nodes == 1:
        if name == "torchrun":
            yield likely_mistake(
                f"torchrun is started on {count} nodes but set up for one: each of them trains alone",
                (*((value,) if value is not None else ()), nodes_value),
                "torchrun --nnodes=$SLURM_NNODES --rdzv-backend=c10d --rdzv-endpoint=FIRST-HOST:29500 …",
            )
        return
    if value is not None and max_nodes is not None and max_nodes < count:
        flag = value.origin.flag or name
        yield likely_mistake(
            f"{name} is started on {count} nodes, but {flag} is {value.text}: "
            f"{_clause_without_place(count - max_nodes)} no place in the job",
            (value, nodes_value),
            f"{flag}=$SLURM_NNODES   # or srun -N {max_nodes} {name} …",
        )
    backend = launcher.values.get("rdzv_backend")
    static = backend is None or backend.text in ("static", "")
    if node is not None and node.integer is not None and static:
        flag = node.origin.flag
        yield likely_mistake(
            f"{flag} is {node.text} on each of the {count} nodes, which srun starts with one command",
            (node, nodes_value),
            f"srun bash -c '{name} … {flag}=$SLURM_NODEID …'   # single quotes: each task expands it",
        )


def _clause_without_place(number: int) -> str:
    return "one of them has" if number == 1 else f"{number} of them have"


def _facts(allocation: str, step: dict[str, str] | None = None, **launcher: str) -> ConfigFacts:
    facts = sample_config_facts("shell", source="slurm", nnodes=allocation)
    parts = list(facts.parts)
    for source, values in (("srun", step), ("torchrun", launcher)):
        if values is not None:
            flags = {
                n: Value(t, Origin(flag="--" + n.replace("_", "-"))) for n, t in values.items()
            }
            started = {"launcher": Value("torchrun")} if source == "srun" else {}
            parts.append(PartialSpec(source=source, values={**flags, **started}))
    return ConfigFacts(kind="shell", spec=facts.spec, parts=tuple(parts))


_TOO_FEW_SLOTS = Problem(
    kind="launch",
    message="-np 8 asks for 8 processes, and -H has 4 slots",
    observed="-H a:2,b:2",
    correction="-H a:4,b:4   # or -np 4",
    origin=Origin(flag="-np", file="run.sh", line=3, column=8),
)

RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "mpirun asks for 8 processes on hosts with 4 slots": (
            sample_config_facts("shell", problems=(_TOO_FEW_SLOTS,)),
            _TOO_FEW_SLOTS.message,
        ),
        "srun asks for 4 nodes in an allocation of 2": (
            _facts("2", {"nnodes": "4"}, nnodes="2"),
            "srun asks for 4 nodes, but the allocation has 2: srun fails",
        ),
        "torchrun waits for 4 nodes in an allocation of 2": (
            _facts("2", {}, nnodes="4"),
            "torchrun waits for 4 nodes, but there are 2",
        ),
        "srun starts torchrun on 2 nodes without `--nnodes`": (
            _facts("2", {}, nproc_per_node="4"),
            "torchrun is started on 2 nodes but set up for one: each of them trains alone",
        ),
        "srun starts torchrun on 3 nodes with `--nnodes=2`": (
            _facts("3", {}, nnodes="2", rdzv_backend="c10d"),
            "torchrun is started on 3 nodes, but --nnodes is 2: one of them has no place in the job",
        ),
        "srun starts torchrun on 2 nodes with `--node-rank=0`": (
            _facts("2", {}, nnodes="2", node_rank="0"),
            "--node-rank is 0 on each of the 2 nodes, which srun starts with one command",
        ),
    },
    silent_on={
        "torchrun waits for 2 nodes in an allocation of 2": _facts("2", {}, nnodes="2"),
        "a step of 2 nodes in an allocation of 4, with `--nnodes=2`": _facts(
            "4", {"nnodes": "2"}, nnodes="2"
        ),
        "a step of one node in an allocation of 4, with `--nnodes=1`": _facts(
            "4", {"nnodes": "1"}, nnodes="1"
        ),
        "an elastic torchrun of 2 to 4 nodes in an allocation of 4": _facts("4", {}, nnodes="2:4"),
        "an allocation of 2 to 4 nodes, and torchrun waits for 4": _facts(
            "2-4", {"nnodes": "4"}, nnodes="4"
        ),
        "a number of nodes that the shell computes": _facts("2", {}, nnodes=""),
        "a node rank that the shell computes": _facts("2", {}, nnodes="2", node_rank=""),
        "`--node-rank=0` with a c10d rendezvous, which assigns the numbers itself": _facts(
            "2", {}, nnodes="2", node_rank="0", rdzv_backend="c10d"
        ),
        "an elastic torchrun of 1 to 3 nodes in an allocation of 3": _facts("3", {}, nnodes="1:3"),
        "torchrun with `--node-rank=0` that srun does not start": _facts(
            "3", None, nnodes="2", node_rank="0"
        ),
        "a step whose number of nodes the shell computes": _facts(
            "2", {"nnodes": ""}, nproc_per_node="4"
        ),
    },
)
