"""A script of one process of a JAX job computes nothing, and that of another waits for it in a computation.

## Why it matters
A computation over the devices of all processes begins once each process has started it. A process whose
script only joins the job and looks at its devices leaves the others waiting: after a while they report a
rendezvous that not all have come to.

## What to do
Run one script on every host, with the number of the process as an argument.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Stage
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script

_INITIALIZE = "jax.distributed.initialize"
_MEETINGS = ("jax.pmap", "jax.lax.p", "jax.experimental.multihost_utils.")
"""How the names of calls begin in which all processes meet."""
_KNOWN_MODULES = {"jax", "numpy", "os", "sys", "time", "socket", "argparse", "logging"}
"""Modules of which only jax computes on the devices."""
_COMPUTES = re.compile(
    r"\b(?:psum|pmean|pmax|all_gather|\w*allgather|sync_global_devices|pmap|jit|shard_map|import_module)\b"
)


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if _INITIALIZE not in facts.source or not facts.siblings:
        return
    script = read_script(facts)
    joins = script.calls_of(_INITIALIZE)
    own_member = _member_of(script, joins[0]) if len(joins) == 1 else None
    if not {full.partition(".")[0] for full in script.names.values()} <= _KNOWN_MODULES:
        return  # what it imports may compute
    if own_member is None or _COMPUTES.search(facts.source):
        return
    for sibling in facts.siblings:
        other_script = read_script(sibling)
        other_joins = other_script.calls_of(_INITIALIZE)
        member = _member_of(other_script, other_joins[0]) if len(other_joins) == 1 else None
        if member is None or member[0] != own_member[0] or member[1] == own_member[1]:
            continue
        meeting = next(
            (c for n, c in other_script.calls if n.startswith(_MEETINGS)),
            None,
        )
        if meeting is None:
            continue
        yield Claim(
            summary=f"process {own_member[1]} runs this script, in which nothing computes: process "
            f"{member[1]} waits for its devices",
            evidence=(script.evidence_for(joins[0]), other_script.evidence_for(meeting)),
            fix=f"{other_script.source_line(meeting)}   # in every process; best one script for all",
            certainty=Certainty.LIKELY,
            where=script.place_of(joins[0]),
        )
        return


def _member_of(script: Script, join: ast.Call) -> tuple[str, int] | None:
    """Return the coordinator and the number of a process, where both are written out."""
    address = call_argument(join, "coordinator_address", 0)
    number = call_argument(join, "process_id", 2)
    if not isinstance(number, ast.Constant) or type(number.value) is not int or address is None:
        return None
    return ast.unparse(resolve(script, address)), number.value


_JOINS = """import jax
jax.distributed.initialize("host0:1234", num_processes=2, process_id=1)
print(jax.device_count())
"""
_COMPUTING = ScriptFacts(
    file="host0.py",
    source=_JOINS.replace("process_id=1", "process_id=0")
    + "print(jax.pmap(lambda x: jax.lax.psum(x, 'i'), axis_name='i')(xs))\n",
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "host 0 meets in a pmap, host 1 only joins": (
            ScriptFacts(source=_JOINS, siblings=(_COMPUTING,)),
            "process 1 runs this script, in which nothing computes: process 0 waits for its devices",
        )
    },
    silent_on={
        "both scripts compute": ScriptFacts(
            source=_COMPUTING.source.replace("process_id=0", "process_id=1"), siblings=(_COMPUTING,)
        ),
        "the other script is that of another job": ScriptFacts(
            source=_JOINS.replace("host0", "host7"), siblings=(_COMPUTING,)
        ),
        "the other script is one more version of this process": ScriptFacts(
            source=_JOINS.replace("process_id=1", "process_id=0"), siblings=(_COMPUTING,)
        ),
        "what it imports may compute": ScriptFacts(
            source="from train import main\n" + _JOINS + "main()\n", siblings=(_COMPUTING,)
        ),
        "it is alone": ScriptFacts(source=_JOINS),
    },
    since="0.1",
    unstaged="read from two scripts by their syntax trees: tests/corpus/questions stages it",
)
