"""Slurm's counts contradict each other, or the job's own WORLD_SIZE or RANK.

## Why it matters
The world size is usually computed from these numbers. If the task counts do not add up to the number of
tasks, or a script exports its own WORLD_SIZE, some ranks are not expected by the others, or the job waits
for ranks that are never started.

## What to do
Make `--ntasks` equal to `#SBATCH --nodes` times `--ntasks-per-node`, or leave one of them out. Take
WORLD_SIZE from `$SLURM_NTASKS`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Origin, PartialSpec, Severity, Value
from allaboard.facts.configuration.config_facts import ConfigFacts, sample_config_facts

_LAUNCHER_VARIABLES = (
    "TORCHELASTIC_RUN_ID",
    "LOCAL_WORLD_SIZE",
    "LOCAL_SIZE",
    "CROSS_RANK",
    "GROUP_RANK",
)
"""Variables of launchers that start several processes in one task."""


def check(facts: ConfigFacts) -> Iterator[Claim]:
    slurm = facts.part_of_source("slurm")
    if slurm is None:
        return
    for problem in slurm.problems:
        yield Claim(
            summary=f"{problem.origin.variable or problem.origin.flag or 'Slurm'}: {problem.message}",
            evidence=(Evidence(problem.observed, str(problem.origin)),),
            fix=problem.correction,
            where=problem.origin.editor_place,
        )
    yield from _check_counts(facts, slurm)
    yield from _check_rank(facts, slurm)
    yield from _check_batch_script(facts, slurm)
    yield from _check_task(facts)


def _check_task(facts: ConfigFacts) -> Iterator[Claim]:
    """Report a WORLD_SIZE that is not the step's size, in a task whose rank is Slurm's number of the task."""
    size, total = facts.variables.get("WORLD_SIZE"), facts.variables.get("SLURM_STEP_NUM_TASKS")
    if size is None or total is None or any(facts.is_set(name) for name in _LAUNCHER_VARIABLES):
        return
    pairs = (("RANK", "SLURM_PROCID"), ("LOCAL_RANK", "SLURM_LOCALID"))
    ours = [(facts.variables.get(a), facts.variables.get(b)) for a, b in pairs]
    if any(a is None or b is None or a.integer is None or a.integer != b.integer for a, b in ours):
        return  # a launcher's own numbers, or the node's
    world, tasks = size.integer, total.integer
    # In `srun --pty bash`, one task, several processes are started by hand.
    if world is None or tasks is None or tasks < 2 or world == tasks:
        return
    missing = world - tasks
    consequence = (
        f"nothing starts {missing} of the ranks"
        if missing > 0
        else f"{-missing} of them {'have' if missing < -1 else 'has'} no rank"
    )
    yield Claim(
        summary=f"WORLD_SIZE is {world}, but the step has {tasks} tasks: {consequence}",
        who=own_member(facts.spec),
        evidence=(size.evidence, total.evidence),
        fix="export WORLD_SIZE=$SLURM_NTASKS",
        severity=Severity.ERROR,
        certainty=Certainty.LIKELY,
    )


def _check_batch_script(facts: ConfigFacts, slurm: PartialSpec) -> Iterator[Claim]:
    """Report a WORLD_SIZE of a batch script that is not the number of tasks of its step."""
    size, step = facts.variables.get("WORLD_SIZE"), facts.part_of_source("srun")
    launched = any(
        facts.part_of_source(n) is not None for n in ("torchrun", "accelerate", "deepspeed")
    )
    if size is None or size.integer is None or step is None or step.values or launched:
        return
    total, nodes = slurm.values.get("world_size"), slurm.values.get("nnodes")
    each = slurm.values.get("tasks_per_node")
    count = total.integer if total is not None else None
    if total is None and nodes is not None and each is not None:
        per = each.integer
        count = nodes.integer * per if nodes.integer is not None and per is not None else None
    total_source = total or each
    if count is None or total_source is None or count == size.integer:
        return
    yield Claim(
        summary=f"WORLD_SIZE is {size.text}, but the step has {count} tasks",
        who=own_member(facts.spec),
        evidence=(size.evidence, total_source.evidence),
        fix="export WORLD_SIZE=$SLURM_NTASKS",
        severity=Severity.ERROR,
        certainty=Certainty.LIKELY,
        where=size.origin.editor_place,
    )


def _check_counts(facts: ConfigFacts, slurm: PartialSpec) -> Iterator[Claim]:
    total, nodes = slurm.values.get("world_size"), slurm.values.get("nnodes")
    listed, each = slurm.values.get("node_list"), slurm.values.get("tasks_per_node")
    count = nodes.integer if nodes is not None else None
    have = len(slurm.machines)
    if nodes is not None and listed is not None and count and have and have != count:
        yield _claim(facts, nodes, listed, f"the node list has {have} nodes")
        return
    if total is None or total.integer is None or each is None:
        return
    slot_sum = sum(m.slots for m in slurm.machines)
    if not slot_sum and count and each.integer:
        slot_sum = count * each.integer
    if not slot_sum or slot_sum == total.integer or 0 in (m.slots for m in slurm.machines):
        return
    if each.origin.flag and total.integer < slot_sum:
        # Beside --ntasks, sbatch takes --ntasks-per-node for a maximum: the last node may have fewer. On one
        # node, and where fewer nodes would do, one of the two is not meant.
        if count and each.integer and (count == 1 or -(-total.integer // each.integer) < count):
            yield _fewer_tasks(facts, total, each, count)
        return
    yield _claim(facts, total, each, f"the tasks per node add up to {slot_sum}")


def _fewer_tasks(facts: ConfigFacts, total: Value, each: Value, nodes: int) -> Claim:
    """Report tasks of which the nodes could take many more: one of the two counts is not meant."""
    per_node = each.integer or 0
    return Claim(
        summary=f"{total.origin.flag} is {total.text} for {nodes} node{'s' if nodes > 1 else ''}, but "
        f"{each.origin.flag} is {each.text}: {total.text} task{'s are' if total.text != '1' else ' is'} "
        f"started, not {nodes * per_node}",
        who=own_member(facts.spec),
        evidence=(total.evidence, each.evidence),
        fix=f"#SBATCH --ntasks={nodes * per_node}   # or leave --ntasks out; for {total.text} tasks "
        f"leave {each.origin.flag} out",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=total.origin.editor_place,
    )


def _check_rank(facts: ConfigFacts, slurm: PartialSpec) -> Iterator[Claim]:
    """Report a RANK that is not SLURM_PROCID although both count the same processes."""
    rank, size = facts.variables.get("RANK"), facts.variables.get("WORLD_SIZE")
    slurm_rank, total = slurm.values.get("rank"), facts.variables.get("SLURM_STEP_NUM_TASKS")
    if rank is None or size is None or slurm_rank is None or total is None:
        return
    if facts.is_set("TORCHELASTIC_RUN_ID") or size.integer != total.integer:
        return
    if rank.integer is not None and rank.integer != slurm_rank.integer:
        yield Claim(
            summary=f"RANK is {rank.text}, but Slurm's number of this task is {slurm_rank.text}",
            who=own_member(facts.spec),
            evidence=(rank.evidence, slurm_rank.evidence, size.evidence),
            fix="export RANK=$SLURM_PROCID   # inside the task: srun bash -c '…'",
            severity=Severity.ERROR,
            certainty=Certainty.LIKELY,
            where=rank.origin.editor_place,
        )


def _claim(facts: ConfigFacts, value: Value, contradicting: Value, contradiction: str) -> Claim:
    name = value.origin.variable or value.origin.flag
    return Claim(
        summary=f"{name} is {value.text}, but {contradiction}",
        who=own_member(facts.spec),
        evidence=(value.evidence, contradicting.evidence),
        fix="#SBATCH --nodes=2 --ntasks-per-node=4   # and no --ntasks",
        severity=Severity.WARNING if value.origin.flag else Severity.ERROR,
        where=value.origin.editor_place,
    )


def _slurm_facts(machines: tuple[tuple[str, int], ...], **values: str) -> ConfigFacts:
    return sample_config_facts(source="slurm", machines=machines, values=values)


_NODES = (("n1", 2), ("n2", 2))


def _batch_script(size: str, **step: str) -> ConfigFacts:
    facts = sample_config_facts(
        "shell",
        source="slurm",
        variables={"WORLD_SIZE": size},
        values={"nnodes": "2", "tasks_per_node": "4"},
    )
    values = {n: Value(t) for n, t in step.items()}
    parts = (*facts.parts, PartialSpec(source="srun", values=values))
    return msgspec.structs.replace(facts, parts=parts)


def _batch_lines(tasks: str, nodes: str, each: str) -> ConfigFacts:
    texts = {"world_size": ("--ntasks", tasks), "nnodes": ("--nodes", nodes)}
    texts["tasks_per_node"] = ("--ntasks-per-node", each)
    values = {n: Value(text, Origin(flag=flag)) for n, (flag, text) in texts.items()}
    facts = sample_config_facts("shell", source="slurm")
    part = PartialSpec(source="slurm", values=values)
    return msgspec.structs.replace(facts, parts=(part,))


def _task_environment(**more: str) -> ConfigFacts:
    """Return the environment of task 1 of 4."""
    here = {
        "SLURM_PROCID": "1",
        "SLURM_LOCALID": "1",
        "SLURM_STEP_NUM_TASKS": "4",
        "LOCAL_RANK": "1",
    }
    variables = {n: t for n, t in {**here, **more}.items() if t}
    return sample_config_facts(source="slurm", variables=variables)


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "WORLD_SIZE is 8, and the tasks per node add up to 4": (
            _slurm_facts(_NODES, world_size="8", tasks_per_node="2(x2)", node_list="n[1-2]"),
            "WORLD_SIZE is 8, but the tasks per node add up to 4",
        ),
        "NNODES is 4, and the node list names 2 nodes": (
            _slurm_facts(_NODES, nnodes="4", node_list="n[1-2]"),
            "NNODES is 4, but the node list has 2 nodes",
        ),
        "one of 4 tasks in a world of 8 ranks": (
            _task_environment(RANK="1", WORLD_SIZE="8"),
            "WORLD_SIZE is 8, but the step has 4 tasks: nothing starts 4 of the ranks",
        ),
        "one of 4 tasks in a world of 3 ranks": (
            _task_environment(RANK="1", WORLD_SIZE="3"),
            "WORLD_SIZE is 3, but the step has 4 tasks: 1 of them has no rank",
        ),
        "2 tasks on 2 nodes that are to have 4 tasks each": (
            _batch_lines("2", "2", "4"),
            "--ntasks is 2 for 2 nodes, but --ntasks-per-node is 4: 2 tasks are started, not 8",
        ),
        "a batch script that sets WORLD_SIZE to 4 and starts 8 tasks": (
            _batch_script("4"),
            "WORLD_SIZE is 4, but the step has 8 tasks",
        ),
    },
    silent_on={
        "10 tasks on 3 nodes of up to 4 tasks: the last node gets 2": _batch_lines("10", "3", "4"),
        "8 tasks on 2 nodes of 4 tasks each": _batch_lines("8", "2", "4"),
        "one of 4 tasks in a world of 4 ranks": _task_environment(RANK="1", WORLD_SIZE="4"),
        "RANK is the number of a node, whose task spawns the ranks itself": _task_environment(
            RANK="1", WORLD_SIZE="8", LOCAL_RANK=""
        ),
        "a rank that torchrun has started": _task_environment(
            RANK="1", WORLD_SIZE="8", TORCHELASTIC_RUN_ID="7"
        ),
        "a rank that DeepSpeed's launcher has started": _task_environment(
            RANK="1", WORLD_SIZE="8", LOCAL_SIZE="2"
        ),
        "ranks that are started by hand in an interactive step of one task": _task_environment(
            RANK="1", WORLD_SIZE="2", SLURM_STEP_NUM_TASKS="1"
        ),
        "WORLD_SIZE and the tasks per node agree": _slurm_facts(
            _NODES, world_size="4", tasks_per_node="2(x2)", node_list="n[1-2]"
        ),
        "a batch script that sets WORLD_SIZE to 8 and starts 8 tasks": _batch_script("8"),
        "a batch script that sets WORLD_SIZE to 4 and starts a step of 4 tasks": _batch_script(
            "4", world_size="4"
        ),
        "a node list without counts of tasks": _slurm_facts(
            (("n1", 0), ("n2", 0)), world_size="4", node_list="n[1-2]"
        ),
    },
)
