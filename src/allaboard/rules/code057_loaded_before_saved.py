"""All ranks load a file that rank 0 has just written, and nothing makes them wait for it.

## Why it matters
The other ranks do not save, so they come to the load first: the file is not there yet, is still being
written, or is that of an earlier run. The load fails on some ranks only (`FileNotFoundError`, `EOFError`,
`storage has wrong size`), or the ranks go on with different weights. It is the same with a folder that rank 0
makes, and in which all ranks write.

## What to do
Put `dist.barrier()` between the save and the load.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.call_graph import CallGraph, call_graph_of
from allaboard.formats.python.collective_calls import COLLECTIVE_CALLS, FRAMEWORK_WORDS
from allaboard.formats.python.rank_conditions import differs_between_ranks
from allaboard.formats.python.script_ast import Script, call_argument, read_script

_SAVES = {"torch.save": ("f", 1), "numpy.save": ("file", 0), "joblib.dump": ("filename", 1)}
_LOADS = {"torch.load": ("f", 0), "numpy.load": ("file", 0), "joblib.load": ("filename", 0)}
_PAIRS = {"torch.save": "torch.load", "numpy.save": "numpy.load", "joblib.dump": "joblib.load"}
_WRITERS = {"open": 0, "logging.FileHandler": 0, "torch.save": 1, "numpy.save": 0}
"""Calls that write a file, and the position of its path."""
_MAY_MEET = ("wait", "barrier", "sync", "reduce", "gather", "broadcast", "backward", "train", "fit")
"""Parts of names of calls in which the ranks may meet, in code that is not seen."""


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if not any(w in facts.source for w in (".load(", "mkdir", "makedirs")) or not any(
        w in facts.source for w in FRAMEWORK_WORDS
    ):
        return
    script = read_script(facts)
    reach = call_graph_of(script)
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
    yield from _written_before_made(script, reach)


def _written_before_made(script: Script, reach: CallGraph) -> Iterator[Claim]:
    """Report files that every rank writes in a folder that one rank makes, without waiting for it."""
    for name, making in script.calls:
        folder = _made_folder(name, making)
        condition = script.rank_condition(making) if folder else None
        if (
            condition is None
            or condition.orelse
            or script.is_after(making, condition)
            or not differs_between_ranks(script, reach, condition.test)
            or not _asks_rank(script, condition.test)
        ):
            continue
        for statement in script.statements_after(condition):
            calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
            if any(_may_meet(script, reach, call) for call in calls):
                break
            writing = next((c for c in calls if _writes_below(script, c, folder)), None)
            if writing is not None:
                if script.rank_condition(writing) is None:
                    yield _folder_claim(script, making, condition, writing)
                break


def _asks_rank(script: Script, test: ast.expr) -> bool:
    """Return True if a condition asks for the rank, and not only whether a folder named after it exists."""
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    return any(script.depends_on_rank(p) and "exists(" not in ast.unparse(p) for p in parts)


def _made_folder(name: str, call: ast.Call) -> str:
    """Return the folder that a call makes; "" if it makes none."""
    if name in ("os.makedirs", "os.mkdir") and call.args:
        return ast.unparse(call.args[0])
    is_path = isinstance(call.func, ast.Attribute) and call.func.attr == "mkdir"
    return ast.unparse(call.func.value) if is_path and isinstance(call.func, ast.Attribute) else ""


def _writes_below(script: Script, call: ast.Call, folder: str) -> bool:
    """Return True if a call writes a file whose path is made of the folder's."""
    name = script.call_name(call.func)
    position = _WRITERS.get(name)
    path = call.args[position] if position is not None and len(call.args) > position else None
    if path is None or (name == "open" and not _opens_to_write(call)):
        return False
    return any(isinstance(n, ast.expr) and ast.unparse(n) == folder for n in ast.walk(path))


def _opens_to_write(call: ast.Call) -> bool:
    mode = call_argument(call, "mode", 1)
    return isinstance(mode, ast.Constant) and any(letter in str(mode.value) for letter in "wax")


def _may_meet(script: Script, reach: CallGraph, call: ast.Call) -> bool:
    called = script.call_name(call.func).rpartition(".")[2].lower()
    return reach.may_call(call, COLLECTIVE_CALLS) or any(part in called for part in _MAY_MEET)


def _folder_claim(script: Script, making: ast.Call, condition: ast.If, writing: ast.Call) -> Claim:
    return Claim(
        summary="every rank writes in a folder that is made only where "
        f"{script.reached_where(making, condition)}, and none waits until it is there",
        evidence=(script.evidence_for(writing), script.evidence_for(making)),
        fix=f"dist.barrier()   # before line {writing.lineno}; or let every rank make it, exist_ok=True",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(writing),
    )


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
            if _may_meet(script, reach, node):
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
_FOLDER = "if rank == 0: os.makedirs(out)\nlog = open(os.path.join(out, f'{rank}.txt'), 'w')\n"
_LOAD = "model.load_state_dict(torch.load(path, map_location='cpu'))\n"

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "rank 0 saves a checkpoint, and all ranks load it at once": (
            ScriptFacts(source=_HEAD + _SAVE + _LOAD),
            "every rank loads what is saved only where rank == 0, and none waits until it is written",
        ),
        "rank 0 makes a folder, and all ranks write in it at once": (
            ScriptFacts(source=_HEAD + _FOLDER),
            "every rank writes in a folder that is made only where rank == 0, and none waits until it is "
            "there",
        ),
    },
    silent_on={
        "rank 0 makes a folder, and a barrier follows": ScriptFacts(
            source=_HEAD + _FOLDER.replace("log =", "dist.barrier()\nlog =")
        ),
        "each rank makes a folder of its own": ScriptFacts(
            source=_HEAD
            + _FOLDER.replace("rank == 0", "not os.path.exists(rank_out)").replace(
                "(out", "(rank_out"
            )
        ),
        "all ranks make the folder": ScriptFacts(
            source=_HEAD + _FOLDER.replace("if rank == 0: ", "")
        ),
        "rank 0 makes a folder, and the ranks only read in it": ScriptFacts(
            source=_HEAD + _FOLDER.replace("'w'", "'r'")
        ),
        "rank 0 makes a folder, and only rank 0 writes in it": ScriptFacts(
            source=_HEAD + _FOLDER.replace("log =", "if rank == 0: log =")
        ),
        "a barrier between saving and loading": ScriptFacts(
            source=_HEAD + _SAVE + "dist.barrier()\n" + _LOAD
        ),
        "a function called `synchronize` between saving and loading": ScriptFacts(
            source=_HEAD + _SAVE + "synchronize()\n" + _LOAD
        ),
        "only rank 0 loads the checkpoint that it saved": ScriptFacts(
            source=_HEAD + _SAVE + "if rank == 0:\n    " + _LOAD
        ),
        "all ranks load another file than rank 0 saves": ScriptFacts(
            source=_HEAD + _SAVE + _LOAD.replace("path", "first")
        ),
        "all ranks save the file": ScriptFacts(source=_HEAD + "torch.save(x, path)\n" + _LOAD),
        "all ranks load the file before rank 0 saves it": ScriptFacts(source=_HEAD + _LOAD + _SAVE),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
