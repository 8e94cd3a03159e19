"""Under Slurm, the port where the ranks meet is taken, or the ports of the tasks run past 65535.

## Why it matters
Tasks of a job array that share a node and have the same MASTER_PORT share that port too: the second cannot
bind, or joins the first one's training. srun keeps ports for itself (SLURM_SRUN_COMM_PORT,
SLURM_STEP_RESV_PORTS). A MASTER_PORT among them belongs to another program, which may answer, and then a
rank waits forever. The other case is a base port that is computed from the job id: base plus local rank may
exceed 65535.

## What to do
Take another port: `export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Severity, whole_number
from allaboard.facts.configuration.cluster import Origin, PartialSpec, Value
from allaboard.facts.configuration.config_facts import ConfigFacts, sample_config_facts

_ONE_NODE = Value("1")


_TORCHRUN_PORT = "29500"


def check(facts: ConfigFacts) -> Iterator[Claim]:
    yield from _check_array(facts)
    port = facts.spec.values.get("master_port")
    number = port.integer if port is not None else None
    if port is None or number is None or facts.part_of_source("slurm") is None:
        return
    problem, evidence = "", Evidence("")
    own_port = facts.variables.get("SLURM_SRUN_COMM_PORT")
    reserved = facts.variables.get("SLURM_STEP_RESV_PORTS")
    if own_port is not None and own_port.integer == number:
        problem, evidence = "which srun itself uses", own_port.evidence
    elif reserved is not None and _is_in_ranges(number, reserved.text):
        problem, evidence = "which Slurm has reserved for MPI", reserved.evidence
    else:
        slots = max((m.slots for m in facts.spec.machines), default=0)
        if slots > 1 and 65535 - slots < number <= 65535 and facts.spec.framework == "tensorflow":
            problem = f"so the last of {slots} tasks on a node would have port {number + slots - 1}"
            evidence = Evidence(f"{slots} tasks", "SLURM_TASKS_PER_NODE")
    if problem:
        yield Claim(
            summary=f"MASTER_PORT is {number}, {problem}",
            who=own_member(facts.spec),
            evidence=(port.evidence, evidence),
            fix="export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))",
            severity=Severity.ERROR,
            certainty=Certainty.LIKELY,
            where=port.origin.editor_place,
        )


def _check_array(facts: ConfigFacts) -> Iterator[Claim]:
    """Report tasks of a job array that may share a node and have the same literal port."""
    slurm, torchrun = facts.part_of_source("slurm"), facts.part_of_source("torchrun")
    array = slurm.values.get("array") if slurm is not None else None
    if slurm is None or array is None or not re.search(r"[-,]", array.text):
        return
    one_at_a_time = "exclusive" in slurm.values or array.text.endswith("%1")
    nodes = slurm.values.get("nnodes")
    if one_at_a_time or (nodes is not None and nodes.integer != 1):
        return
    port = facts.spec.values.get("master_port")
    if torchrun is not None:
        flags = torchrun.values
        if {"standalone", "rdzv_endpoint"} & flags.keys() or flags.get(
            "nnodes", _ONE_NODE
        ).text != "1":
            return
        port = flags.get("master_port") or Value(_TORCHRUN_PORT, Origin(flag="torchrun (default)"))
    if port is None or port.integer in (None, 0):
        return
    yield Claim(
        summary=f"tasks of the job array on the same node all use port {port.text}",
        evidence=(port.evidence, array.evidence),
        fix="torchrun --standalone …   # or MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=port.origin.editor_place or array.origin.editor_place,
    )


def _is_in_ranges(number: int, ranges: str) -> bool:
    for part in ranges.split(","):
        low, _, high = part.partition("-")
        low_port, high_port = whole_number(low), whole_number(high or low)
        if low_port is not None and high_port is not None and low_port <= number <= high_port:
            return True
    return False


def _array_script(array: str, torchrun: dict[str, str] | None = None) -> ConfigFacts:
    facts = sample_config_facts("shell", source="slurm", array=array)
    values = {n: Value(t, Origin(flag=f"--{n}")) for n, t in (torchrun or {}).items()}
    launcher = PartialSpec(source="torchrun", values=values)
    return ConfigFacts(kind="shell", spec=facts.spec, parts=(*facts.parts, launcher))


def _facts(port: str, **variables: str) -> ConfigFacts:
    return sample_config_facts(source="slurm", master_port=port, variables=variables)


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "MASTER_PORT is the port that srun itself uses": (
            _facts("36821", SLURM_SRUN_COMM_PORT="36821"),
            "MASTER_PORT is 36821, which srun itself uses",
        ),
        "MASTER_PORT is among the ports that are reserved for MPI": (
            _facts("12005", SLURM_STEP_RESV_PORTS="12001-12008"),
            "MASTER_PORT is 12005, which Slurm has reserved for MPI",
        ),
        "tasks of a job array whose torchruns all take port 29500": (
            _array_script("0-7", {"nproc_per_node": "2"}),
            "tasks of the job array on the same node all use port 29500",
        ),
    },
    silent_on={
        "MASTER_PORT is outside the reserved ports": _facts(
            "29500", SLURM_STEP_RESV_PORTS="12001-12008"
        ),
        "a job array that runs one task at a time": _array_script("0-7%1"),
        "a job array with a single task": _array_script("3"),
        "a job array whose torchruns take any free port (`--standalone`)": _array_script(
            "0-7", {"standalone": "1"}
        ),
        "a job array with a port that the shell computes": _array_script(
            "0-7", {"master_port": ""}
        ),
    },
)
