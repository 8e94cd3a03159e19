"""Mistakes in how a TensorFlow script feeds a strategy: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.flow.tf_datasets import Pipeline, loop_source, pipeline_part
from allaboard.formats.python.resolution import receiver_call_name
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_RUN_METHODS = ("run", "experimental_run_v2")
_DIVIDES = re.compile(
    r"shard\b|input_pipeline_id|num_input_pipelines|task_id|task_index|worker_index"
)
"""Matches what gives a worker a part of the data."""


def _strategy_runs(script: Script) -> Iterator[tuple[ast.Call, ast.expr, list[ast.expr]]]:
    """Yield the calls of `strategy.run`, with the step's function and its arguments."""
    for call in script.method_calls(*_RUN_METHODS):
        passed = call_argument(call, "args", 1)
        if "Strategy" not in receiver_call_name(script, call) and "strategy" not in (
            ast.unparse(call.func).lower()
        ):
            continue
        arguments = list(passed.elts) if isinstance(passed, (ast.Tuple, ast.List)) else []
        by_name = call_argument(call, "kwargs", 2)
        arguments += by_name.values if isinstance(by_name, ast.Dict) else []
        if call.args and arguments:
            yield call, call.args[0], arguments


def _dataset_in_run(facts: ScriptFacts) -> Iterator[Claim]:
    if "args" not in facts.source or "trategy" not in facts.source:
        return
    script = read_script(facts)
    for call, step, arguments in _strategy_runs(script):
        for argument in arguments:
            part = pipeline_part(script, argument)
            if part not in (Pipeline.DATASET, Pipeline.SHARDED_DATASET, Pipeline.DISTRIBUTED):
                continue
            text = ast.unparse(argument)[:60]
            over = (
                text
                if part is Pipeline.DISTRIBUTED
                else f"strategy.experimental_distribute_dataset({text})"
            )
            yield Claim(
                summary=f"strategy.run gets {text}, a whole dataset, where a step takes one batch",
                evidence=(script.evidence_for(call),),
                fix=f"for batch in {over}: strategy.run({ast.unparse(step)[:40]}, args=(batch,))",
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )
            break


def _dataset_not_distributed(facts: ScriptFacts) -> Iterator[Claim]:
    if "trategy" not in facts.source or _DIVIDES.search(facts.source):
        return
    script = read_script(facts)
    makers = [
        s for s in script.strategies if not re.search("OneDevice|TPU", script.call_name(s.func))
    ]
    if not makers:
        return
    several_workers = any("MultiWorker" in script.call_name(s.func) for s in makers)
    for call, _, arguments in _strategy_runs(script):
        origin = next(filter(None, (_plain_batch(script, a, call) for a in arguments)), None)
        if origin is None:
            continue
        every = "worker" if several_workers else "replica"
        yield Claim(
            summary=f"the dataset is never distributed: every {every} trains on the same batches",
            evidence=(script.evidence_for(origin), script.evidence_for(call)),
            fix=f"for batch in strategy.experimental_distribute_dataset({_dataset_text(script, origin)}):",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(origin),
        )
        return


def _plain_batch(script: Script, argument: ast.expr, call: ast.Call) -> ast.expr | None:
    """Return where a batch of an undistributed dataset comes from that the step gets; None for any other.

    If the argument is a parameter of the function around `strategy.run`, its calls say what it is.
    """
    outer = script.enclosing_function(call)
    parameters = [a.arg for a in outer.args.args] if outer is not None else []
    is_passed = isinstance(argument, ast.Name) and argument.id in parameters
    if not is_passed and pipeline_part(script, argument) is Pipeline.BATCH:
        over = loop_source(script, argument) if isinstance(argument, ast.Name) else None
        return over if over is not None else argument
    if outer is None or not isinstance(argument, ast.Name) or not is_passed:
        return None
    if script.ranks.sole_value(argument) is not None:
        return None
    position = parameters.index(argument.id) - (parameters[0] == "self")
    for name, outer_call in script.calls:
        if name.rpartition(".")[2] == outer.name and position < len(outer_call.args):
            passed = outer_call.args[position]
            if pipeline_part(script, passed) is Pipeline.BATCH:
                over = loop_source(script, passed) if isinstance(passed, ast.Name) else None
                return over if over is not None else passed
    return None


def _dataset_text(script: Script, origin: ast.expr) -> str:
    """Return the dataset in the text of what is iterated over."""
    while (
        isinstance(origin, ast.Call)
        and origin.args
        and ast.unparse(origin.func)
        in (
            "next",
            "iter",
            "enumerate",
        )
    ):
        origin = origin.args[0]
    if isinstance(origin, ast.Name):
        value = script.ranks.sole_value(origin)
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "iter" and value.args:
            origin = value.args[0]
    return ast.unparse(origin)[:60]


_HEAD = """import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
ds = tf.data.Dataset.from_tensor_slices(images).batch(64)
"""
_DISTRIBUTED = _HEAD + "ds = strategy.experimental_distribute_dataset(ds)\n"
_LOOP = "for batch in ds:\n    strategy.run(step, args=(batch,))\n"
_PASSED = "@tf.function\ndef epoch(data):\n    strategy.run(step, args=(data,))\n"
RULES = {
    "code017_dataset_given_to_run": script_rule(
        page="""`strategy.run` gets a dataset instead of a batch.

## Why it matters
`strategy.run(step, args=(dataset,))` calls the step once, with the dataset itself: each replica iterates over
all of it on its own, or the call fails with an error about iterating in a replica context. Nothing splits the
data, and the replicas do not meet after each batch.

## What to do
Distribute the dataset once, iterate over it outside of the step, and pass each batch.
""",
        check=_dataset_in_run,
        fires_on={
            "`strategy.run` gets a whole `tf.data` dataset": (
                _HEAD + "strategy.run(step, args=(ds,))\n",
                "strategy.run gets ds, a whole dataset, where a step takes one batch",
            ),
            "`strategy.run` gets a whole distributed dataset": (
                _HEAD
                + "dist = strategy.experimental_distribute_dataset(ds)\nstrategy.run(step, args=(dist,))\n",
                "strategy.run gets dist, a whole dataset, where a step takes one batch",
            ),
            "a function passes the dataset that it gets on to `strategy.run`": (
                _DISTRIBUTED.replace("ds = strategy", "dist = strategy")
                + _PASSED
                + "epoch(dist)\n",
                "strategy.run gets data, a whole dataset, where a step takes one batch",
            ),
        },
        silent_on={
            "a function passes the batch that it gets on to `strategy.run`": _DISTRIBUTED.replace(
                "ds = strategy", "dist = strategy"
            )
            + _PASSED
            + "for batch in dist:\n    epoch(batch)\n",
            "a loop passes each batch to `strategy.run`": _DISTRIBUTED.replace(
                "ds = strategy", "dist = strategy"
            )
            + "for batch in dist:\n    strategy.run(step, args=(batch,))\n",
            "`strategy.run` gets the next batch of an iterator": _HEAD
            + "it = iter(strategy.experimental_distribute_dataset(ds))\n"
            "strategy.run(step, args=(next(it),))\n",
            "`run` of an object that is no strategy": _HEAD.replace("strategy", "pool")
            + "runner.run(step, args=(ds,))\n",
        },
    ),
    "code018_dataset_not_distributed": script_rule(
        page="""The batches that `strategy.run` gets are those of an ordinary dataset.

## Why it matters
Only `experimental_distribute_dataset` and `distribute_datasets_from_function` divide a dataset. Batches of
a plain `tf.data.Dataset` are passed to every replica as they are: all replicas, on all workers, compute the
same gradients on the same examples. The job is no faster than one GPU, and the effective batch is that of
one replica.

## What to do
`for batch in strategy.experimental_distribute_dataset(dataset):`, with the dataset batched by the global
size. Keras' `fit` does it by itself.
""",
        check=_dataset_not_distributed,
        fires_on={
            "a loop passes the batches of an undistributed dataset to `strategy.run`": (
                _HEAD + _LOOP,
                "the dataset is never distributed: every worker trains on the same batches",
            ),
            "a loop passes the batches of an undistributed dataset on through a function": (
                _HEAD.replace("MultiWorkerMirrored", "Mirrored")
                + "@tf.function\ndef train(x):\n    return strategy.run(step, args=(x,))\n"
                "for i, x in enumerate(ds):\n    train(x)\n",
                "the dataset is never distributed: every replica trains on the same batches",
            ),
        },
        silent_on={
            "a loop passes the batches of a distributed dataset to `strategy.run`": _HEAD
            + "for batch in strategy.experimental_distribute_dataset(ds):\n"
            "    strategy.run(step, args=(batch,))\n",
            "the script shards the dataset by the worker's index": _HEAD
            + "ds = ds.shard(2, index)\n"
            + _LOOP,
            "`model.fit`, which distributes the dataset itself": _HEAD + "model.fit(ds)\n",
        },
    ),
}
