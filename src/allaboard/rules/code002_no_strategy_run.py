"""A strategy is created, but the train step never goes through `strategy.run`.

## Why it matters
This loop is very common, and it seems to work: every worker computes its own gradients on its own data and
applies them to its own model. Nothing is averaged and nothing fails; N workers train N models.

## What to do
Put the step's body into a function for one replica, and call it through `strategy.run(step,
args=(batch,))`, on batches of `strategy.experimental_distribute_dataset(...)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Stage
from allaboard.formats.python.script_ast import read_script

_RUN_METHODS = (
    "run",
    "experimental_run_v2",
    "schedule",
    "fit",
    "train_and_evaluate",
    "call_for_each_replica",
)
_OTHER_RUNS = frozenset(
    (
        "absl.app.run",
        "app.run",
        "subprocess.run",
        "tensorflow.app.run",
        "tensorflow.compat.v1.app.run",
    )
)
"""Functions called `run` that have nothing to do with a strategy."""


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if facts.is_piece:
        return  # what it lacks may stand in the rest of the script
    script = read_script(facts)
    tapes = script.calls_of("tensorflow.GradientTape")
    makers = [s for s in script.strategies if "OneDevice" not in script.call_name(s.func)]
    if not makers or not tapes or "train_distribute" in facts.source:  # an Estimator runs its steps
        return
    if any(script.call_name(c.func) not in _OTHER_RUNS for c in script.method_calls(*_RUN_METHODS)):
        return
    step = script.enclosing_function(tapes[0])
    name = step.name if step is not None else "step"
    shown = step if step is not None else tapes[0]
    yield Claim(
        summary=f"{name} computes gradients but never goes through strategy.run: "
        "each worker would train alone",
        evidence=(script.evidence_for(shown), script.evidence_for(makers[0])),
        fix=f"strategy.run({name}, args=(…,))",
        certainty=Certainty.LIKELY,
        where=script.place_of(shown),
    )


_LOOP = """import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([])
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = model(x) - y
    return tape.gradient(loss, model.trainable_variables)
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a loop calls the train step directly": (
            ScriptFacts(source=_LOOP + "for x, y in data:\n    train_step(x, y)\n"),
            "train_step computes gradients but never goes through strategy.run: "
            "each worker would train alone",
        ),
        "a loop calls the train step directly, in a script that calls `app.run`": (
            ScriptFacts(
                source=f"from absl import app\n{_LOOP}def main(_):\n"
                "    for x, y in data:\n        train_step(x, y)\napp.run(main)\n"
            ),
            "train_step computes gradients but never goes through strategy.run: "
            "each worker would train alone",
        ),
    },
    silent_on={
        "a loop calls the train step through `strategy.run`": ScriptFacts(
            source=_LOOP + "for x, y in data:\n    strategy.run(train_step, args=(x, y))\n"
        ),
        "the strategy is given to an Estimator, which runs the step": ScriptFacts(
            source=_LOOP + "c = tf.estimator.RunConfig(train_distribute=strategy)\n"
        ),
        "a OneDeviceStrategy, which has a single replica": ScriptFacts(
            source=_LOOP.replace("MultiWorkerMirrored", "OneDevice")
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
