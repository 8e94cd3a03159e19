"""Mistakes in how scripts feed TensorFlow's coordinator and its batches: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import read_script
from allaboard.formats.python.script_rule import script_rule

_SERVERS = ("tensorflow.distribute.", "tensorflow.distribute.experimental.")
_JOINS = re.compile(r"\.(?:join|fetch|done)\(")
_OWN_BATCH = re.compile(r"//\s*[\w.]*num_replicas_in_sync|/\s*[\w.]*num_replicas_in_sync")
_PER_WORKER_INPUT = re.compile(
    r"distribute_datasets_from_function|input_context|num_input_pipelines"
)


def _beside_coordinator(facts: ScriptFacts) -> Iterator[Claim]:
    if "ParameterServerStrategy" not in facts.source or "ClusterCoordinator" not in facts.source:
        return
    script = read_script(facts)
    for name, call in script.calls:
        is_run = any(name == f"{part}ParameterServerStrategy().run" for part in _SERVERS)
        if not is_run or script.enclosing_function(call) is not None:
            continue
        step = ast.unparse(call.args[0]) if call.args else "step"
        yield Claim(
            summary="this step runs on the coordinator itself: the workers get only what "
            "coordinator.schedule gives them",
            evidence=(script.evidence_for(call),),
            fix=f"coordinator.schedule({step}, args=(per_worker_iterator,))",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _read_before_join(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if "ClusterCoordinator" not in source or ".schedule(" not in source or facts.is_piece:
        return
    if _JOINS.search(source.replace("server.join(", "").replace("path.join(", "")):
        return
    script = read_script(facts)
    scheduled = script.method_calls("schedule")
    saved = [
        c
        for c in script.method_calls("save", "save_weights", "export")
        if scheduled and c.lineno > scheduled[-1].lineno
    ]
    if not saved:
        return
    yield Claim(
        summary="nothing waits for the scheduled steps: this saves the variables while workers still "
        "change them",
        evidence=(script.evidence_for(saved[0]), script.evidence_for(scheduled[-1])),
        fix="coordinator.join()   # before it",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(saved[0]),
    )


def _batch_divided_twice(facts: ScriptFacts) -> Iterator[Claim]:
    if "num_replicas_in_sync" not in facts.source or _PER_WORKER_INPUT.search(facts.source):
        return
    script = read_script(facts)
    if not script.strategies:
        return
    for call in script.method_calls("batch"):
        size = resolve(script, call.args[0]) if call.args else None
        if size is None or not _is_own_size(size):
            continue
        takers = script.method_calls("fit", "experimental_distribute_dataset")
        if not takers:
            continue
        yield Claim(
            summary="a batch of this dataset is dealt out to all replicas, and its size is divided by their "
            "number already: each gets a part of its part",
            evidence=(script.evidence_for(call), script.evidence_for(takers[0])),
            fix="dataset.batch(GLOBAL_BATCH_SIZE)   # the strategy divides it",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _is_own_size(size: ast.expr) -> bool:
    """Return True if a number is a quotient by the number of replicas."""
    if isinstance(size, ast.Call) and len(size.args) == 1:
        size = size.args[0]
    return isinstance(size, ast.BinOp) and bool(_OWN_BATCH.search(ast.unparse(size)))


_COORDINATED = (
    "import tensorflow as tf\nstrategy = tf.distribute.ParameterServerStrategy(resolver)\n"
    "coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)\n"
)
_RUN = _COORDINATED + "for x in data:\n    strategy.run(step, args=(x,))\n"
_SAVED = _COORDINATED + "for i in range(9):\n    coordinator.schedule(step)\nmodel.save('m')\n"
_BATCH = (
    "import tensorflow as tf\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
    "size = 64 // strategy.num_replicas_in_sync\ndata = data.batch(size)\nmodel.fit(data)\n"
)

RULES = {
    "code085_beside_coordinator": script_rule(
        page="""Under ParameterServerStrategy, a step runs on the coordinator, and no worker gets it.

## Why it matters
The coordinator hands out steps with `coordinator.schedule`. A `strategy.run` of its own is executed on
the coordinator alone: the workers are idle, and nothing says so.

## What to do
Wrap the step in a `tf.function` that calls `strategy.run`, and pass that to `coordinator.schedule`.
""",
        check=_beside_coordinator,
        fires_on={
            "the coordinator calls strategy.run in its loop": (
                _RUN,
                "this step runs on the coordinator itself: the workers get only what coordinator.schedule "
                "gives them",
            )
        },
        silent_on={
            "strategy.run in a function that is scheduled": _COORDINATED
            + "def each(it):\n    return strategy.run(step, args=(next(it),))\n"
            "coordinator.schedule(each, args=(it,))\n",
            "a strategy without a coordinator": _RUN.replace(
                "coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)\n", ""
            ),
        },
    ),
    "code086_read_before_join": script_rule(
        page="""A model is saved while the steps that the coordinator has scheduled still run.

## Why it matters
`coordinator.schedule` returns at once. Without `join`, the variables are read in the middle of the last
steps: the checkpoint is a mixture, and failures of workers stay unseen.

## What to do
`coordinator.join()` before the variables or metrics are read.
""",
        check=_read_before_join,
        fires_on={
            "the model is saved behind the loop that schedules": (
                _SAVED,
                "nothing waits for the scheduled steps: this saves the variables while workers still change "
                "them",
            )
        },
        silent_on={
            "the coordinator joins first": _SAVED.replace(
                "model.save", "coordinator.join()\nmodel.save"
            ),
            "each result is fetched": _SAVED.replace(
                "coordinator.schedule(step)", "coordinator.schedule(step).fetch()"
            ),
            "nothing is saved behind the loop": _SAVED.replace("model.save('m')\n", ""),
        },
    ),
    "code087_batch_divided_twice": script_rule(
        page="""A batch that a strategy divides is divided by the number of replicas before.

## Why it matters
`fit` and `experimental_distribute_dataset` take global batches and deal each of them out. A batch size
that is divided by `num_replicas_in_sync` already is divided again: with eight replicas each gets a 64th.

## What to do
`batch(GLOBAL_BATCH_SIZE)`. Only the datasets of `distribute_datasets_from_function` have the size of a
replica.
""",
        check=_batch_divided_twice,
        fires_on={
            "the batch of a replica is given to fit": (
                _BATCH,
                "a batch of this dataset is dealt out to all replicas, and its size is divided by their "
                "number already: each gets a part of its part",
            )
        },
        silent_on={
            "the global batch is given to fit": _BATCH.replace("64 //", "64 *"),
            "each worker makes its own input": _BATCH.replace(
                "model.fit(data)", "strategy.distribute_datasets_from_function(make)"
            ),
            "a number of steps is divided": _BATCH.replace(
                "data.batch(size)", "data.batch(64).take(size)"
            ),
        },
    ),
}
