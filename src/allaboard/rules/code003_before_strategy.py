"""TensorFlow is used before MultiWorkerMirroredStrategy is created.

## Why it matters
The strategy has to set up collectives before TensorFlow's runtime starts, and a dataset, constant or
variable created earlier starts it. The constructor then fails with `Collective ops must be configured at
program startup`; or, if that was a slow load, the other workers wait for this one.

## What to do
Create the strategy first, right after the imports. If you must load data before it, load it with NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Stage
from allaboard.formats.python.script_ast import read_script

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
)


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if facts.is_notebook:  # its cells run in the order that a person chooses
        return
    script = read_script(facts)
    makers = script.calls_of("tensorflow.distribute.MultiWorkerMirroredStrategy")
    if not makers:
        return
    strategy_call = makers[0]
    strategy_function = script.enclosing_function(strategy_call)
    for name, call in script.calls:
        starts_runtime = name in _RUNTIME_STARTERS or name.startswith("tensorflow.data.Dataset.")
        if (
            not starts_runtime
            or call.lineno >= strategy_call.lineno
            or script.enclosing_function(call) is not strategy_function
        ):
            continue
        yield Claim(
            summary="TensorFlow is used before MultiWorkerMirroredStrategy is created, "
            "which must come first",
            evidence=(script.evidence_for(call), script.evidence_for(strategy_call)),
            fix=f"{script.source_line(strategy_call)}   # before line {call.lineno}",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


_MAKE = "strategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
_DATA = "data = tf.data.Dataset.range(8)\n"

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a dataset": (
            ScriptFacts(source="import tensorflow as tf\n" + _DATA + _MAKE),
            "TensorFlow is used before MultiWorkerMirroredStrategy is created, which must come first",
        )
    },
    silent_on={
        "in a notebook": ScriptFacts(
            source="import tensorflow as tf\n" + _DATA + _MAKE, is_notebook=True
        ),
        "after it": ScriptFacts(source="import tensorflow as tf\n" + _MAKE + _DATA),
        "in a function": ScriptFacts(
            source="import tensorflow as tf\ndef data():\n    return tf.data.Dataset.range(8)\n"
            + _MAKE
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
