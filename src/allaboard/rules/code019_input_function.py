"""The function given to `distribute_datasets_from_function` does not do its part.

## Why it matters
TensorFlow calls that function once for each worker, with a `tf.distribute.InputContext`, and changes nothing
in what it returns. A function without a parameter fails with a TypeError. One that does not shard makes every
worker read all of the data. And one that batches by the global size gives each replica that many examples: N
times the batch that was meant, and often too little GPU memory.

## What to do
`ds = ds.shard(context.num_input_pipelines, context.input_pipeline_id)`, then
`ds.batch(context.get_per_replica_batch_size(GLOBAL_BATCH_SIZE))`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.flow.tf_datasets import DISTRIBUTE_METHODS, function_of
from allaboard.formats.python.script_ast import Function, Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_DIVIDES = re.compile(
    r"shard\b|input_pipeline_id|num_input_pipelines|task_id|task_index|worker_index"
)
"""Matches what gives a worker a part of the data."""
_GLOBAL_BATCH = re.compile(r"global_?batch", re.I)


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if "from_function" not in facts.source:
        return
    script = read_script(facts)
    for call in script.method_calls(*(DISTRIBUTE_METHODS - {"experimental_distribute_dataset"})):
        made_by = call_argument(call, "dataset_fn", 0)
        found = function_of(script, made_by) if made_by is not None else None
        if found is None:
            continue
        function = found[0]
        problem = _input_function_problem(script, *found)
        if problem:
            summary, fix, severity = problem
            yield Claim(
                summary=summary,
                evidence=(script.evidence_for(function), script.evidence_for(call)),
                fix=fix,
                severity=severity,
                certainty=Certainty.LIKELY,
                where=script.place_of(function),
            )


def _input_function_problem(
    script: Script, function: Function | ast.Lambda, filled: int
) -> tuple[str, str, Severity] | None:
    """Return summary, correction and weight of what is wrong with a function that makes datasets."""
    name = "the lambda" if isinstance(function, ast.Lambda) else function.name
    parameters = function.args
    if parameters.vararg is not None or parameters.kwarg is not None:
        return None
    positional = [a.arg for a in (*parameters.posonlyargs, *parameters.args)][filled:]
    if not positional:
        header = "lambda context: …" if name == "the lambda" else f"def {name}(context):"
        return f"{name} takes no InputContext, with which it is called", header, Severity.ERROR
    text = ast.unparse(function)
    for inner in _batch_sizes(function):
        if _GLOBAL_BATCH.search(ast.unparse(inner)) and "get_per_replica_batch_size" not in text:
            size = ast.unparse(inner)[:60]
            return (
                f"{name} batches by {size}, the size of all replicas together: "
                "each gets a batch of that size",
                f".batch({positional[0]}.get_per_replica_batch_size({size}))",
                Severity.WARNING,
            )
    several_workers = any("MultiWorker" in script.call_name(s.func) for s in script.strategies)
    if not several_workers or _DIVIDES.search(text) or _hands_on(function, positional[0]):
        return None
    if "from_generator" in text or "random" in text:
        return None  # it may draw other data in each worker
    context = positional[0]
    return (
        f"{name} does not shard its dataset: every worker reads all of the data",
        f".shard({context}.num_input_pipelines, {context}.input_pipeline_id)   # before .batch",
        Severity.WARNING,
    )


def _batch_sizes(function: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in ("batch", "padded_batch") and node.args:
            yield node.args[0]


def _hands_on(function: ast.AST, context: str) -> bool:
    """Return True if the context goes to another function, which may shard."""
    return any(
        isinstance(argument, ast.Name) and argument.id == context
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        for argument in (*node.args, *(k.value for k in node.keywords))
    )


_FUNCTION = """import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
def make(context):
    BODY
data = strategy.distribute_datasets_from_function(make)
"""
_SHARDED = "return files.shard(context.num_input_pipelines, context.input_pipeline_id).batch(32)"

RULE = script_rule(
    page="",
    check=check,
    fires_on={
        "a function without a parameter": (
            _FUNCTION.replace("context", "").replace("BODY", "return files.batch(32)"),
            "make takes no InputContext, with which it is called",
        ),
        "a function that does not shard its dataset": (
            _FUNCTION.replace("BODY", "return files.shuffle(9).batch(32)"),
            "make does not shard its dataset: every worker reads all of the data",
        ),
        "a function that batches by the global batch size": (
            _FUNCTION.replace("BODY", _SHARDED.replace("32", "GLOBAL_BATCH_SIZE")),
            "make batches by GLOBAL_BATCH_SIZE, the size of all replicas together: each gets a batch "
            "of that size",
        ),
    },
    silent_on={
        "a function that shards its dataset and batches it": _FUNCTION.replace("BODY", _SHARDED),
        "a function that does not shard its dataset, under MirroredStrategy": _FUNCTION.replace(
            "BODY", "return files.batch(32)"
        ).replace("MultiWorkerMirrored", "Mirrored"),
        "a function that passes its context on to another function, which may shard": _FUNCTION.replace(
            "BODY", "return build(files, context)"
        ),
    },
)
