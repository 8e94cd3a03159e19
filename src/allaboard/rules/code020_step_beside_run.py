"""A step that goes through `strategy.run` is also called directly.

## Why it matters
What is called directly runs once, on one device of each worker: its gradients are not averaged, and its
variables are updated on this worker alone. The replicas drift apart from that step on, and on several workers
those that took the other branch wait in an all-reduce that this one never enters.

## What to do
Call the step through `strategy.run` everywhere. Tests of one batch belong outside of the training script.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.script_ast import Function, Script, read_script

_RUN_METHODS = ("run", "experimental_run_v2")
_CHOICE_FOR_THE_WHOLE_RUN = re.compile(
    r"strateg|distribut|replica|multi|tpu|gpu|mirror|dist\b|args|flags|config|params|opts|hparams"
    r"|eager|debug|single|use_|None",
    re.I,
)
"""Matches conditions with the same outcome at every step: whether the job is distributed at all."""


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if "GradientTape" not in facts.source or "trategy" not in facts.source:
        return
    script = read_script(facts)
    if not script.strategies:
        return
    through_run = {
        _function_name(call.args[0]): call
        for call in script.method_calls(*_RUN_METHODS)
        if call.args and _function_name(call.args[0])
    }
    for name, call, choice in _calls_by_name(script):
        run = through_run.get(name)
        if (
            run is None
            or not _applies_gradients(script, name)
            or _is_fine(script, call, through_run)
            or (choice is not None and _CHOICE_FOR_THE_WHOLE_RUN.search(ast.unparse(choice.test)))
        ):
            continue
        step = name if choice is not None else ast.unparse(call.func)
        arguments = ", ".join(ast.unparse(a) for a in call.args)[:60]
        comma = "," if len(call.args) == 1 else ""
        yield Claim(
            summary=f"{name} is called without strategy.run here, and through it in line {run.lineno}: "
            "this step is not averaged over the replicas",
            evidence=(
                script.evidence_for(call),
                *([script.evidence_for(choice)] if choice is not None else []),
                script.evidence_for(run),
            ),
            fix=f"strategy.run({step}, args=({arguments}{comma}))",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _calls_by_name(script: Script) -> Iterator[tuple[str, ast.Call, ast.IfExp | None]]:
    """Yield each call with the name of its function; `step = a if first else b` may call either."""
    for _, call in script.calls:
        bound = script.ranks.sole_value(call.func) if isinstance(call.func, ast.Name) else None
        if isinstance(bound, ast.IfExp):
            for branch in (bound.body, bound.orelse):
                yield _function_name(branch), call, bound
        else:
            yield _function_name(call.func), call, None


def _function_name(node: ast.expr) -> str:
    """Return the name of a function or of a method of ``self``; "" for anything else."""
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _applies_gradients(script: Script, name: str) -> bool:
    """Return True if the function of this name trains: it computes gradients and applies them."""
    functions = script.functions_named(name)
    if len(functions) != 1:
        return False
    text = ast.unparse(functions[0])
    return "GradientTape" in text and "apply_gradients" in text


def _is_fine(script: Script, call: ast.Call, through_run: dict[str, ast.Call]) -> bool:
    """Return True if the call runs inside another step, or in a run that is not distributed at all."""
    child: ast.AST = call
    for above in script.ancestors(call):
        test = above.test if isinstance(above, (ast.If, ast.IfExp)) else child
        is_choice = child is not test and _CHOICE_FOR_THE_WHOLE_RUN.search(ast.unparse(test))
        if is_choice and not _changes_in_loop(script, test):
            return True
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return above.name in through_run or not _is_called(script, above)
        child = above
    return False


def _changes_in_loop(script: Script, test: ast.AST) -> bool:
    """Return True if a condition asks for the step or the epoch: what a loop around it counts."""
    names = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
    loops = (a for a in script.ancestors(test) if isinstance(a, ast.For))
    return any(
        isinstance(n, ast.Name) and n.id in names for loop in loops for n in ast.walk(loop.target)
    )


def _is_called(script: Script, function: Function) -> bool:
    """Return True if the script calls the function itself, by its name or as a method of ``self``."""
    is_method = isinstance(script.parents.get(function), ast.ClassDef)
    called = script.method_calls(function.name) if is_method else []
    return bool(called) or any(
        _function_name(call.func) == function.name for _, call in script.calls
    )


_HEAD = """import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
def train_step(x):
    with tf.GradientTape() as tape:
        loss = model(x)
    opt.apply_gradients(zip(tape.gradient(loss, weights), weights))
"""
_EITHER = """def spread(x):
    strategy.run(train_step, args=(x,))
for epoch in range(9):
    step = train_step if epoch == 0 else spread
    for x in data:
        step(x)
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "every tenth batch goes to the step directly": (
            ScriptFacts(
                source=_HEAD + "for i, x in enumerate(data):\n    if i % 10:\n"
                "        strategy.run(train_step, args=(x,))\n    else:\n        train_step(x)\n"
            ),
            "train_step is called without strategy.run here, and through it in line 9: this step is not "
            "averaged over the replicas",
        ),
        "the first epoch calls the step directly, the others through `strategy.run`": (
            ScriptFacts(source=_HEAD + _EITHER),
            "train_step is called without strategy.run here, and through it in line 8: this step is not "
            "averaged over the replicas",
        ),
    },
    silent_on={
        "an option decides for the whole run whether `strategy.run` is used": ScriptFacts(
            source=_HEAD + _EITHER.replace("epoch == 0", "args.eager")
        ),
        "every batch goes through `strategy.run`": ScriptFacts(
            source=_HEAD + "for x in data:\n    strategy.run(train_step, args=(x,))\n"
        ),
        "the step is called directly only if nothing is distributed": ScriptFacts(
            source=_HEAD + "for x in data:\n    if args.distributed:\n"
            "        strategy.run(train_step, args=(x,))\n    else:\n        train_step(x)\n"
        ),
        "the step is called by another step that goes through `strategy.run`": ScriptFacts(
            source=_HEAD + "def two(x):\n    train_step(x)\n    train_step(x)\nfor x in data:\n"
            "    strategy.run(two, args=(x,))\n    strategy.run(train_step, args=(x,))\n"
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
