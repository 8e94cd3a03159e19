"""The script sets its own RANK to a fixed number, in every process.

## Why it matters
`os.environ["RANK"] = "0"`, `init_process_group(rank=0, world_size=2)` or `jax.distributed.initialize(...,
process_id=0)` replace what the launcher said: every process has the same rank. The second one cannot bind the
port, or all wait for rank 1, which does not exist.

## What to do
Leave the rank to the launcher (torchrun, `allaboard run`), or take it from an argument. A world of one
process is fine for a trial: set WORLD_SIZE to 1. If each host has a script of its own, check them together:
scripts whose ranks differ are fine.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.environment_writes import EnvironmentWrite, environment_writes
from allaboard.formats.python.evaluation import integer
from allaboard.formats.python.flow.fixed_ranks import is_unconditional, join_size, joins
from allaboard.formats.python.script_ast import Script, read_script

_STATES_RANK = re.compile(
    r"RANK|rank\s*=|process_id|task_id|task_index|init_process_group\(|initialize\("
)
_CORRECT_RANKS = {
    "rank": 'rank=int(os.environ["RANK"])',
    "process_id": 'process_id=int(os.environ["JAX_PROCESS_ID"])',
    "task_id": 'task_id=int(os.environ["WORKER_INDEX"])',
    "task_index": 'task_index=int(os.environ["WORKER_INDEX"])',
}


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if not _STATES_RANK.search(facts.source):
        return
    script = read_script(facts)
    yield from _fixed_arguments(script, facts.siblings)
    if not script.calls_of("torch.distributed.init_process_group"):
        return
    set_here = _set_numbers(script)
    rank, size = set_here.get("RANK"), set_here.get("WORLD_SIZE")
    if rank is None or size is None or not rank[1] < size[1] or size[1] < 2:
        return
    others = [_set_numbers(read_script(s)).get("RANK") for s in facts.siblings]
    if any(sibling is not None and sibling[1] != rank[1] for sibling in others):
        return
    write, number = rank
    yield Claim(
        summary=f"the script sets RANK itself: every process that runs it is rank {number} of {size[1]}",
        evidence=(script.evidence_for(write.value), script.evidence_for(size[0].value)),
        fix='rank = int(os.environ["RANK"])   # as the launcher set it',
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(write.node if isinstance(write.node, ast.stmt) else write.value),
    )


def _fixed_arguments(script: Script, siblings: tuple[ScriptFacts, ...]) -> Iterator[Claim]:
    """Report a rank that the script's only call passes as a constant, whoever runs it."""
    calls = list(joins(script))
    if len(calls) != 1:
        return  # each may be that of another member
    (join,) = calls
    rank, size = integer(script, join.rank), join_size(script, join)
    if rank is None or size is None or not 0 <= rank < size or size < 2:
        return
    if not is_unconditional(script, join.call):
        return
    for sibling in siblings:
        other_script = read_script(sibling)
        if any(integer(other_script, j.rank) not in (rank, None) for j in joins(other_script)):
            return
    yield Claim(
        summary=f"{join.rank_argument} is {rank} in every process that runs this script, and {size} are to "
        "join",
        evidence=(script.evidence_for(join.call),),
        fix=f"{_CORRECT_RANKS[join.rank_argument]}   # as the launcher set it",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(join.rank),
    )


def _set_numbers(script: Script) -> dict[str, tuple[EnvironmentWrite, int]]:
    """Return the variables that every run of the script sets to one number, whoever starts it."""
    numbers: dict[str, tuple[EnvironmentWrite, int]] = {}
    writes = list(environment_writes(script, "RANK", "WORLD_SIZE"))
    for write in writes:
        number = integer(script, write.value)
        alone = sum(w.variable == write.variable for w in writes) == 1
        if number is None or not alone or write.is_default:
            continue
        if is_unconditional(script, write.node):
            numbers[write.variable] = write, number
    return numbers


_SET = """import os
import torch.distributed as dist
os.environ["RANK"] = "0"
os.environ["WORLD_SIZE"] = "2"
dist.init_process_group("gloo")
"""
_JAX = """import jax
jax.distributed.initialize("10.1.0.10:1234", num_processes=4, process_id=0)
"""
_RESOLVER = """import tensorflow as tf
spec = tf.train.ClusterSpec({"worker": ["a:2222", "b:2222"]})
r = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, task_type="worker", task_id=0)
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "the script sets RANK to 0 and WORLD_SIZE to 2": (
            ScriptFacts(source=_SET),
            "the script sets RANK itself: every process that runs it is rank 0 of 2",
        ),
        "`init_process_group` with `rank=0` and a world size of 2": (
            ScriptFacts(
                source="import torch.distributed as dist\nW = 2\n"
                "dist.init_process_group('gloo', rank=0, world_size=W)\n"
            ),
            "rank is 0 in every process that runs this script, and 2 are to join",
        ),
        "`jax.distributed.initialize` with `process_id=0` and four processes": (
            ScriptFacts(source=_JAX),
            "process_id is 0 in every process that runs this script, and 4 are to join",
        ),
        "a cluster resolver with `task_id=0` and two workers": (
            ScriptFacts(source=_RESOLVER),
            "task_id is 0 in every process that runs this script, and 2 are to join",
        ),
    },
    silent_on={
        "a script for process 0, given together with one for process 1": ScriptFacts(
            source=_JAX,
            siblings=(ScriptFacts(source=_JAX.replace("process_id=0", "process_id=1")),),
        ),
        "a process id from the command line": ScriptFacts(
            source=_JAX.replace("process_id=0", "process_id=int(sys.argv[1])")
        ),
        "`process_id=0` under a condition": ScriptFacts(
            source=_JAX.replace("jax.distributed.i", "if first:\n    jax.distributed.i")
        ),
        "the script sets RANK to 0 and WORLD_SIZE to 1": ScriptFacts(
            source=_SET.replace('"2"', '"1"')
        ),
        "RANK is taken from the command line": ScriptFacts(
            source=_SET.replace('"0"', "sys.argv[1]")
        ),
        "RANK is set only if the launcher has not set it": ScriptFacts(
            source=_SET.replace(
                'os.environ["RANK"] = "0"',
                'if "RANK" not in os.environ:\n    os.environ["RANK"] = "0"',
            )
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
