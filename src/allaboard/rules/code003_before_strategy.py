"""TensorFlow is used before MultiWorkerMirroredStrategy is created.

## Why it matters
The strategy has to set up collectives before TensorFlow's runtime starts, and a dataset, constant or
variable created earlier starts it. The constructor then fails with `Collective ops must be configured at
program startup`; or, if that was a slow load, the other workers wait for this one.

## What to do
Create the strategy first, right after the imports. If you must load data before it, load it with NumPy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Stage
from allaboard.formats.python.flow.execution_order import earlier_place
from allaboard.formats.python.script_ast import Script, read_script

_RUNTIME_STARTERS = (
    "tensorflow.constant",
    "tensorflow.Variable",
    "tensorflow.convert_to_tensor",
    "tensorflow.ones",
    "tensorflow.zeros",
    "tensorflow.keras.Sequential",
    "tensorflow.keras.Model",
    "tensorflow.random.normal",
    "tensorflow.random.uniform",
    "tensorflow.cast",
    "tensorflow.one_hot",
    "tensorflow.range",
    "tensorflow.reshape",
    "tensorflow.expand_dims",
    "tensorflow.config.list_logical_devices",
    "tensorflow.test.is_gpu_available",
)


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if facts.is_notebook:  # its cells run in the order that a person chooses
        return
    script = read_script(facts)
    makers = script.calls_of("tensorflow.distribute.MultiWorkerMirroredStrategy")
    if not makers:
        return
    strategy_call = makers[0]
    for name, call in script.calls:
        starts_runtime = name in _RUNTIME_STARTERS or name.startswith("tensorflow.data.Dataset.")
        earlier_call = _earlier_place(script, call, strategy_call) if starts_runtime else None
        if earlier_call is None:
            continue
        yield Claim(
            summary="TensorFlow is used before MultiWorkerMirroredStrategy is created, which must come first",
            evidence=(script.evidence_for(call), script.evidence_for(strategy_call)),
            fix=f"{script.source_line(strategy_call)}   # before line {getattr(earlier_call, 'lineno', 0)}",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _earlier_place(script: Script, call: ast.Call, strategy_call: ast.Call) -> ast.AST | None:
    """Return the call that starts the runtime, or the one that leads to it, if the strategy comes later."""
    if script.enclosing_function(call) is script.enclosing_function(strategy_call):
        return call if call.lineno < strategy_call.lineno else None
    # A function that is traced makes no tensor when it is called.
    is_traced = any(
        isinstance(a, (ast.FunctionDef, ast.AsyncFunctionDef)) and a.decorator_list
        for a in script.ancestors(call)
    )
    return None if is_traced else earlier_place(script, call, strategy_call)


_MAKE = "strategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
_DATA = "data = tf.data.Dataset.range(8)\n"

_LOADED = (
    "import tensorflow as tf\ndef load():\n    return tf.data.Dataset.range(8)\n"
    "def main():\n    A\n    B\nmain()\n"
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a dataset is created before the strategy": (
            ScriptFacts(source="import tensorflow as tf\n" + _DATA + _MAKE),
            "TensorFlow is used before MultiWorkerMirroredStrategy is created, which must come first",
        ),
        "a function creates a dataset, and is called before the strategy is created": (
            ScriptFacts(source=_LOADED.replace("A", "data = load()").replace("B", _MAKE)),
            "TensorFlow is used before MultiWorkerMirroredStrategy is created, which must come first",
        ),
    },
    silent_on={
        "a function creates a dataset, and is called after the strategy is created": ScriptFacts(
            source=_LOADED.replace("A\n", _MAKE).replace("B", "data = load()")
        ),
        "a function above the strategy is only passed to `map` below it": ScriptFacts(
            source="import tensorflow as tf\ndef cut(x):\n    return tf.cast(x, tf.float32)\n"
            + _MAKE
            + _DATA
            + "data = data.map(cut)\n"
        ),
        "a notebook, whose cells may run in another order": ScriptFacts(
            source="import tensorflow as tf\n" + _DATA + _MAKE, is_notebook=True
        ),
        "a dataset is created after the strategy": ScriptFacts(
            source="import tensorflow as tf\n" + _MAKE + _DATA
        ),
        "a function that creates a dataset is defined above the strategy, and not called there": ScriptFacts(
            source="import tensorflow as tf\ndef data():\n    return tf.data.Dataset.range(8)\n"
            + _MAKE
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
