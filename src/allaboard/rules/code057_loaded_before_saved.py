"""All ranks load a file that rank 0 has just written, and nothing makes them wait for it.

## Why it matters
The other ranks do not save, so they come to the load first: the file is not there yet, is still being
written, or is that of an earlier run. The load fails on some ranks only (`FileNotFoundError`, `EOFError`,
`storage has wrong size`), or the ranks go on with different weights.

## What to do
Put `dist.barrier()` between the save and the load.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.call_graph import CallGraph
from allaboard.formats.python.collective_calls import COLLECTIVE_CALLS, FRAMEWORK_WORDS
from allaboard.formats.python.rank_conditions import differs_between_ranks
from allaboard.formats.python.script_ast import Script, call_argument, read_script

_SAVES = {"torch.save": ("f", 1), "numpy.save": ("file", 0), "joblib.dump": ("filename", 1)}
_LOADS = {"torch.load": ("f", 0), "numpy.load": ("file", 0), "joblib.load": ("filename", 0)}
_PAIRS = {"torch.save": "torch.load", "numpy.save": "numpy.load", "joblib.dump": "joblib.load"}
_MAY_MEET = ("wait", "barrier", "sync", "reduce", "gather", "broadcast", "backward", "train", "fit")
"""Parts of names of calls in which the ranks may meet, in code that is not seen."""


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if ".load(" not in facts.source or not any(w in facts.source for w in FRAMEWORK_WORDS):
        return
    script = read_script(facts)
    reach = CallGraph(script)
    for name, save in script.calls:
        if name not in _SAVES:
            continue
        condition = script.rank_condition(save)
        if (
            condition is None
            or script.is_after(save, condition)
            or not differs_between_ranks(script, reach, condition.test)
        ):
            continue
        load = _load_by_all(script, reach, name, save, condition)
        if load is not None:
            yield _claim(script, save, condition, load)


def _load_by_all(
    script: Script, reach: CallGraph, name: str, save: ast.Call, condition: ast.If
) -> ast.Call | None:
    """Return the first load of the saved file by every rank, if no rank waits before it; else None."""
    path = call_argument(save, *_SAVES[name])
    if path is None or condition.orelse:
        return None
    text = ast.unparse(path)
    loader = _PAIRS[name]
    for statement in script.statements_after(condition):
        for node in ast.walk(statement):
            if not isinstance(node, ast.Call):
                continue
            called = script.call_name(node.func)
            if called == loader:
                loaded = call_argument(node, *_LOADS[loader])
                same = loaded is not None and ast.unparse(loaded) == text
                return node if same and script.rank_condition(node) is None else None
            if reach.may_call(node, COLLECTIVE_CALLS) or any(
                part in called.rpartition(".")[2].lower() for part in _MAY_MEET
            ):
                return None
    return None


def _claim(script: Script, save: ast.Call, condition: ast.If, load: ast.Call) -> Claim:
    return Claim(
        summary=f"every rank loads what is saved only where {script.reached_where(save, condition)}, and "
        "none waits until it is written",
        evidence=(script.evidence_for(load), script.evidence_for(save)),
        fix=f"dist.barrier()   # before line {load.lineno}",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(load),
    )


_HEAD = "import torch\nimport torch.distributed as dist\nrank = dist.get_rank()\n"
_SAVE = "if rank == 0:\n    torch.save(model.state_dict(), path)\n"
_LOAD = "model.load_state_dict(torch.load(path, map_location='cpu'))\n"

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "no barrier between": (
            ScriptFacts(source=_HEAD + _SAVE + _LOAD),
            "every rank loads what is saved only where rank == 0, and none waits until it is written",
        )
    },
    silent_on={
        "a barrier": ScriptFacts(source=_HEAD + _SAVE + "dist.barrier()\n" + _LOAD),
        "a barrier in a helper": ScriptFacts(source=_HEAD + _SAVE + "synchronize()\n" + _LOAD),
        "loaded by the same rank": ScriptFacts(
            source=_HEAD + _SAVE + "if rank == 0:\n    " + _LOAD
        ),
        "another file": ScriptFacts(source=_HEAD + _SAVE + _LOAD.replace("path", "first")),
        "saved by all": ScriptFacts(source=_HEAD + "torch.save(x, path)\n" + _LOAD),
        "loaded before": ScriptFacts(source=_HEAD + _LOAD + _SAVE),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
