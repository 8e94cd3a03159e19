"""A model or a variable is created outside of `strategy.scope()`.

## Why it matters
Only what is created inside the scope becomes a mirrored variable. A model created before or beside it
has plain variables: `compile` or `fit` fails with a message about variables from another strategy, or each
worker trains a copy of its own and nothing is averaged.

## What to do
Create the model, its optimizer and its metrics inside `with strategy.scope():`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Stage
from allaboard.formats.python.script_ast import Function, Script, read_script

_MODEL_CLASSES = frozenset(
    f"{keras}.{name}"
    for keras in ("tensorflow.keras", "keras", "tensorflow.keras.models", "keras.models")
    for name in ("Sequential", "Model")
)
_MAX_DEPTH = 8


def check(facts: ScriptFacts) -> Iterator[Claim]:
    script = read_script(facts)
    if (
        not script.strategies or "train_distribute" in facts.source
    ):  # an Estimator has its own scope
        return
    for name, call in script.calls:
        ready_made = ".applications." in name and "keras" in name and "()" not in name
        is_model = name in _MODEL_CLASSES or (ready_made and name.rpartition(".")[2][:1].isupper())
        if not is_model or _runs_in_scope(script, call, 0):
            continue
        outer = script.enclosing_function(call)
        if (
            outer is not None
            and not script.name_uses(outer)
            and not _is_called_by_maker(script, outer)
        ):
            continue  # not called in this file: it may be called inside a scope elsewhere
        if outer is not None and _is_of_another_part(script, outer):
            continue
        yield Claim(
            summary="a model is created outside of strategy.scope(): its variables are not mirrored",
            evidence=(script.evidence_for(call), script.evidence_for(script.strategies[0])),
            fix=f"with strategy.scope():\n    {script.source_line(call)}",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _is_called_by_maker(script: Script, method: Function) -> bool:
    """Return True if the method that makes the strategy calls this one of its class outside of a scope."""
    holder = script.parents.get(method)
    homes = {script.enclosing_function(s) for s in script.strategies}
    if not isinstance(holder, ast.ClassDef) or len(homes) != 1:
        return False
    calls = [
        call
        for call in script.method_calls(method.name)
        if ast.unparse(call.func) == f"self.{method.name}"
    ]
    return bool(calls) and all(
        script.enclosing_function(call) in homes
        and script.parents.get(script.enclosing_function(call) or call) is holder
        and not script.is_in_strategy_scope(call)
        for call in calls
    )


def _is_of_another_part(script: Script, function: Function) -> bool:
    """Return True if every strategy is made inside other functions, none of which calls this one."""
    homes = {script.enclosing_function(s) for s in script.strategies}
    apart = [function, *(h for h in homes if h is not None)]
    if None in homes or function in homes:
        return False
    if any(script.parents.get(f) is not script.tree for f in apart):
        return False
    return not any(script.enclosing_function(use) in homes for use in script.name_uses(function))


def _runs_in_scope(script: Script, node: ast.AST, depth: int) -> bool:
    """Return True if the node runs inside a scope, as far as the script itself shows."""
    if depth > _MAX_DEPTH or script.is_in_strategy_scope(node):
        return True
    outer: ast.AST | None = script.enclosing_function(node)
    holder = next((a for a in script.ancestors(node) if isinstance(a, ast.ClassDef)), None)
    uses = script.name_uses(outer) if isinstance(outer, Function) else []
    if holder is not None:
        uses += [n for n in script.parents if isinstance(n, ast.Name) and n.id == holder.name]
    return any(
        _is_handed_on(script, use) or _runs_in_scope(script, use, depth + 1)
        for use in uses
        if use is not node
    )


def _is_handed_on(script: Script, use: ast.AST) -> bool:
    """Return True if a function is passed to another, which may call it inside a scope."""
    around = script.parents.get(use)
    call = script.parents.get(around) if isinstance(around, ast.keyword) else around
    is_argument = isinstance(call, ast.Call) and call.func is not use
    return (
        is_argument and isinstance(call, ast.Call) and script.call_name(call.func) != "isinstance"
    )


_HEAD = """import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
"""
_METHOD = """import tensorflow as tf
class Run:
    def __init__(self):
        self.strategy = tf.distribute.MirroredStrategy()
        self.model = self.build()
    def build(self):
        return tf.keras.Sequential([tf.keras.layers.Dense(1)])
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a method builds the model, and is called outside of the scope": (
            ScriptFacts(source=_METHOD),
            "a model is created outside of strategy.scope(): its variables are not mirrored",
        ),
        "a model is built at the top of the script, before the scope": (
            ScriptFacts(
                source=_HEAD + "model = tf.keras.Sequential([])\n"
                "with strategy.scope():\n    model.compile()\n"
            ),
            "a model is created outside of strategy.scope(): its variables are not mirrored",
        ),
    },
    silent_on={
        "a method builds the model, and is called inside the scope": ScriptFacts(
            source=_METHOD.replace(
                "        self.model", "        with self.strategy.scope():\n            self.model"
            )
        ),
        "a method builds a model, and the script itself never calls it": ScriptFacts(
            source=_METHOD.replace("self.build()", "None")
        ),
        "a model is built inside the scope": ScriptFacts(
            source=_HEAD + "with strategy.scope():\n    model = tf.keras.Sequential([])\n"
        ),
        "a function builds the model, and is called inside the scope": ScriptFacts(
            source=_HEAD + "def build():\n    return tf.keras.Sequential([])\n"
            "with strategy.scope():\n    model = build()\n"
        ),
        "the strategy is given to an Estimator, which opens the scope itself": ScriptFacts(
            source=_HEAD + "c = tf.estimator.RunConfig(train_distribute=strategy)\n"
            "model = tf.keras.Sequential([])\n"
        ),
        "a function for prediction builds a model, and has no strategy": ScriptFacts(
            source="import tensorflow as tf\ndef train():\n    s = tf.distribute.MirroredStrategy()\n"
            "def predict():\n    return tf.keras.Sequential([])\ntrain()\npredict()\n"
        ),
        "a script without a strategy": ScriptFacts(
            source="import tensorflow as tf\nmodel = tf.keras.Sequential([])\n"
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
