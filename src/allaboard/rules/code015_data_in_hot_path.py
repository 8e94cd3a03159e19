"""The data pipeline is rebuilt in every training step.

## Why it matters
`next(iter(loader))` inside the loop starts a new pass each time: its worker processes start and end with
every step, and a sampler without `set_epoch` yields the same first batch in every step. The
others wait for the rank whose workers start slowly. `experimental_distribute_dataset` inside the loop makes
a new distributed dataset in each step, which gets slower and larger from step to step.

## What to do
Build the loader before the loop and iterate over it: `for x, y in loader:`. Or keep one iterator, `batches
= iter(loader)`, and call `next(batches)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.flow.loops import has_inner_loop, innermost_loop, repeating_loop
from allaboard.formats.python.script_ast import Script, read_script

_TRAINING_CALLS = ("backward", "apply_gradients", "train_on_batch")
_MAX_CALL_DEPTH = 3
"""Length of a chain of calls that is followed to a function that trains."""
_METHODS_WITHOUT_DATA = ("parameters", "buffers", "modules", "children", "values", "keys", "items",
            "named_parameters", "named_buffers", "named_modules")  # fmt: skip
"""Methods whose first element is read to look at a device or a gradient, not for data."""
_DISTRIBUTING_METHODS = ("experimental_distribute_dataset", "distribute_datasets_from_function")


def check(facts: ScriptFacts) -> Iterator[Claim]:
    script = read_script(facts)
    if not script.is_distributed:
        return
    for name, call in script.calls:
        over = _advanced(name, call)
        loop = innermost_loop(script, call)
        if loop is None and over is not None:
            loop = _loop_of_callers(script, call)
        if loop is None:
            continue
        if (
            over is not None
            and _is_new_iterator(script, over, loop)
            and (innermost_loop(script, call) is None or _is_training_loop(script, loop))
        ):
            yield _claim(
                script,
                call,
                "every step restarts the data pipeline: its worker processes start again, and each step may "
                "get the same batch",
                "batches = iter(loader)   # before the loop, then next(batches)",
            )
        elif (
            isinstance(call.func, ast.Attribute)
            and call.func.attr in _DISTRIBUTING_METHODS
            and _is_training_loop(script, loop)
            and not has_inner_loop(loop)
        ):
            yield _claim(
                script,
                call,
                "the dataset is distributed again in every step",
                f"{script.source_line(call)}   # before the loop",
            )


def _advanced(name: str, call: ast.Call) -> ast.expr | None:
    """Return the iterator that a call takes the next item from; None for any other call."""
    if name == "next" and call.args:
        return call.args[0]
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == "get_next"
    return call.func.value if is_method and isinstance(call.func, ast.Attribute) else None


def _loop_of_callers(script: Script, call: ast.Call) -> ast.AST | None:
    """Return the innermost loop that calls the function around a call, which is a step without a loop, or
    gives a step its batch."""
    function = script.enclosing_function(call)
    loop = repeating_loop(script, call)
    if function is None or loop is None or has_inner_loop(function):
        return None
    gives = any(isinstance(a, ast.Return) for a in script.ancestors(call))
    trains = _is_training_loop(script, function) or (
        gives and _is_training_loop(script, loop, False)
    )
    return loop if trains else None


def _is_new_iterator(script: Script, node: ast.expr, loop: ast.AST) -> bool:
    """Return True for a new iterator over data, not over a model's parameters or a mapping.

    One that the same loop keeps in a variable, and advances once, is as new.
    """
    if isinstance(node, ast.Name):
        value = script.ranks.sole_value(node)
        is_made_there = value is not None and innermost_loop(script, value) is loop
        uses = [
            n
            for n in ast.walk(loop)
            if isinstance(n, ast.Name) and n.id == node.id and isinstance(n.ctx, ast.Load)
        ]
        if value is None or not is_made_there or len(uses) != 1:
            return False
        node = value
    if not isinstance(node, ast.Call) or script.call_name(node.func) != "iter" or not node.args:
        return False
    over = node.args[0]
    called = (
        over.func.attr
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute)
        else ""
    )
    return called not in _METHODS_WITHOUT_DATA


def _is_training_loop(script: Script, loop: ast.AST, by_epochs: bool = True) -> bool:
    """Return True if the loop trains, itself or by functions of the script that it calls or passes on
    (`strategy.run(step, …)`). Without ``by_epochs`` those with a loop of their own do not count."""
    functions = [
        n
        for n in ast.walk(script.tree)
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (by_epochs or not has_inner_loop(n))
    ]
    compiled = [
        (n.targets[0].id, n.value)
        for n in script.parents
        if isinstance(n, ast.Assign)
        and isinstance(n.targets[0], ast.Name)
        and isinstance(n.value, ast.Call)
        and script.call_name(n.value.func) == "tensorflow.function"
    ]
    train: set[str] = set()
    for _ in range(_MAX_CALL_DEPTH):
        train |= {f.name for f in functions if _calls_training(f, train)}
        train |= {name for name, value in compiled if _calls_training(value, train)}
    return _calls_training(loop, train)


def _calls_training(node: ast.AST, functions: set[str]) -> bool:
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        if isinstance(call.func, ast.Attribute) and call.func.attr in _TRAINING_CALLS:
            return True
        for used in (call.func, *call.args):
            is_own = isinstance(used, ast.Attribute) and ast.unparse(used.value) == "self"
            if (used.attr if is_own else getattr(used, "id", "")) in functions:  # type: ignore[attr-defined]
                return True
    return False


def _claim(script: Script, call: ast.Call, summary: str, fix: str) -> Claim:
    return Claim(
        summary=summary,
        evidence=(script.evidence_for(call),),
        fix=fix,
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(call),
    )


_HEAD = """import torch
import torch.distributed as dist
dist.init_process_group("gloo")
"""
_STEP = "    model(x).sum().backward()\n"
_TF = """import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
def f(x):
    opt.apply_gradients(grads(x))
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "`next(iter(loader))` in each step": (
            ScriptFacts(
                source=f"{_HEAD}for step in range(9):\n    x = next(iter(loader))\n{_STEP}"
            ),
            "every step restarts the data pipeline: its worker processes start again, and each step may "
            "get the same batch",
        ),
        "`next(iter(data))` in a function that does one step": (
            ScriptFacts(
                source=_TF + "def step():\n    strategy.run(f, args=(next(iter(data)),))\n"
                "for _ in range(9):\n    step()\n"
            ),
            "every step restarts the data pipeline: its worker processes start again, and each step may "
            "get the same batch",
        ),
        "a new iterator in each step, kept in a variable": (
            ScriptFacts(
                source=_TF + "for _ in range(9):\n    it = iter(data)\n"
                "    strategy.run(f, args=(next(it),))\n"
            ),
            "every step restarts the data pipeline: its worker processes start again, and each step may "
            "get the same batch",
        ),
        "a new distributed dataset in each step": (
            ScriptFacts(
                source=_TF + "for step in range(9):\n"
                "    data = iter(strategy.experimental_distribute_dataset(make()))\n"
                "    strategy.run(f, args=(next(data),))\n"
            ),
            "the dataset is distributed again in every step",
        ),
    },
    silent_on={
        "a new iterator for each epoch": ScriptFacts(
            source=_TF + "for epoch in range(9):\n    it = iter(data)\n    for _ in range(100):\n"
            "        strategy.run(f, args=(next(it),))\n"
        ),
        "one iterator for all steps": ScriptFacts(
            source=f"{_HEAD}it = iter(loader)\nfor step in range(9):\n    x = next(it)\n{_STEP}"
        ),
        "`next(iter(net.parameters()))` in each step": ScriptFacts(
            source=f"{_HEAD}for x in loader:\n    p = next(iter(net.parameters()))\n{_STEP}"
        ),
        "one batch is read before the loop": ScriptFacts(
            source=f"{_HEAD}x = next(iter(loader))\nfor x in loader:\n{_STEP}"
        ),
        "one batch is read at the beginning of a function that trains": ScriptFacts(
            source=f"{_HEAD}def fit():\n    show(next(iter(loader)))\n    for x in loader:\n    {_STEP}"
            "for seed in seeds:\n    fit()\n"
        ),
        "one batch of each of several loaders is shown, without training": ScriptFacts(
            source=f"{_HEAD}for n in names:\n    x = next(iter(loaders[n]))\n    show(x)\n"
        ),
        "one batch of each of several datasets is evaluated": ScriptFacts(
            source=_TF + "for n in names:\n    x = next(iter(sets[n]))\n"
            "    strategy.run(judge, args=(x,))\n"
        ),
        "the dataset is distributed again in each epoch": ScriptFacts(
            source=_TF + "for epoch in range(9):\n"
            "    data = strategy.experimental_distribute_dataset(make(epoch))\n"
            "    for batch in data:\n        strategy.run(f, args=(batch,))\n"
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
