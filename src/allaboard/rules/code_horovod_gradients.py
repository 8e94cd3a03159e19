"""Gradients that Horovod's optimizer does not average, or averages twice: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_WRAP = "horovod.tensorflow.DistributedOptimizer"
_TORCH_WRAP = "horovod.torch.DistributedOptimizer"
_GRAPH_OPTIMIZER = re.compile(r"tensorflow\.(?:compat\.v1\.)?train\.\w+Optimizer")
_GRADIENTS = ("tensorflow.gradients", "tensorflow.compat.v1.gradients")
_AVERAGES = re.compile(
    r"allreduce|compute_gradients|\.minimize\(|get_gradients|DistributedGradientTape"
)
"""Matches what averages the gradients of a graph beside the wrapper, or by it."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def _past_the_wrapper(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if "horovod" not in source or "apply_gradients" not in source or _AVERAGES.search(source):
        return
    script = read_script(facts)
    taken = script.calls_of(*_GRADIENTS)
    for wrap in script.calls_of(_WRAP):
        inner = wrap.args[0] if wrap.args else None
        parent = script.parents[wrap]
        if not isinstance(parent, ast.Assign) or not _is_graph_optimizer(script, inner):
            continue
        optimizer = ast.unparse(parent.targets[0])
        applied = [
            c
            for c in script.method_calls("apply_gradients")
            if ast.unparse(c.func) == f"{optimizer}.apply_gradients"
        ]
        if not taken or not applied:
            continue
        loss, variables = (ast.unparse(a) for a in (*taken[0].args[:2], ast.Constant(None))[:2])
        yield Claim(
            summary=f"{optimizer}.apply_gradients averages nothing: Horovod does that in compute_gradients, "
            "and these gradients are tf.gradients' own: each process trains a model of its own",
            evidence=(script.evidence_for(taken[0]), script.evidence_for(applied[0])),
            fix=f"grads = [g for g, _ in {optimizer}.compute_gradients({loss}, {variables})]",
            certainty=Certainty.LIKELY,
            where=script.place_of(taken[0]),
        )
        return


def _is_graph_optimizer(script: Script, inner: ast.expr | None) -> bool:
    """Return True if what is wrapped is an optimizer of TensorFlow 1."""
    if isinstance(inner, ast.Call):
        return bool(_GRAPH_OPTIMIZER.fullmatch(script.call_name(inner.func)))
    if not isinstance(inner, ast.Name):
        return False
    calls = [v for v in script.ranks.bound_values(inner) if isinstance(v, ast.Call)]
    return any(_GRAPH_OPTIMIZER.fullmatch(script.call_name(c.func)) for c in calls)


def _twice_before_the_step(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if source.count("DistributedOptimizer(") < 2 or "backward_passes_per_step" in source:
        return
    script = read_script(facts)
    owners = dict(_wrapped_parts(script))
    if len(owners) < 2:
        return
    for loop in [n for n in script.parents if isinstance(n, _LOOPS)]:
        backwards: list[ast.Call] = []
        stepped: set[str] = set()
        for call in sorted(
            (n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Call)),
            key=lambda n: (n.lineno, n.col_offset),
        ):
            owner, _, method = ast.unparse(call.func).rpartition(".")
            if method == "step" and owner in owners:
                stepped.add(owner)
            if method != "backward" or not _is_of(loop, call, set(owners.values())):
                continue
            unstepped = [o for o in owners if o not in stepped]
            if backwards and unstepped and len(set(owners.values())) == 1:
                yield Claim(
                    summary=f"this backward fills the gradients of {unstepped[0]} once more before it has "
                    'stepped: Horovod ends the job with "Gradients were computed more than '
                    'backward_passes_per_step times"',
                    evidence=(script.evidence_for(call), script.evidence_for(backwards[0])),
                    fix=f"{unstepped[0]}.step()   # behind line {backwards[0].lineno}, one backward for both",
                    certainty=Certainty.LIKELY,
                    where=script.place_of(call),
                )
                return
            backwards.append(call)


def _wrapped_parts(script: Script) -> Iterator[tuple[str, str]]:
    """Yield each optimizer that Horovod wraps, with the model of which it steps a part."""
    for wrap in script.calls_of(_TORCH_WRAP):
        parent = script.parents[wrap]
        named = call_argument(wrap, "named_parameters", 1)
        of_part = full_name(named.func, {}) if isinstance(named, ast.Call) else ""
        model, _, rest = of_part.partition(".")
        if isinstance(parent, ast.Assign) and rest.endswith("named_parameters") and "." in rest:
            yield ast.unparse(parent.targets[0]), model


def _is_of(loop: ast.AST, backward: ast.Call, models: set[str]) -> bool:
    """Return True if the loss of a backward is computed by one of the models, in the same loop."""
    assert isinstance(backward.func, ast.Attribute)
    loss = ast.unparse(backward.func.value)
    values = [
        ast.unparse(n.value)
        for n in ast.walk(loop)
        if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == loss
    ]
    return any(f"{m}(" in text for m in models for text in [loss, *values])


_GRAPH = """import tensorflow as tf
import horovod.tensorflow as hvd
hvd.init()
opt = hvd.DistributedOptimizer(tf.train.AdamOptimizer(0.1))
grads = tf.gradients(loss, tvars)
train = opt.apply_gradients(zip(grads, tvars))
with tf.train.MonitoredTrainingSession(hooks=[hvd.BroadcastGlobalVariablesHook(0)]) as sess:
    sess.run(train)
"""
_PARTS = """import torch
import horovod.torch as hvd
hvd.init()
a = hvd.DistributedOptimizer(sgd(model.body), named_parameters=model.body.named_parameters())
b = hvd.DistributedOptimizer(sgd(model.head), named_parameters=model.head.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
for x in loader:
    loss = model(x).sum()
    loss.backward()
    a.step()
    loss = model(x).sum()
    loss.backward()
    b.step()
"""

RULES = {
    "code114_past_the_wrapper": script_rule(
        page="""Gradients of `tf.gradients` are applied by Horovod's optimizer, which does not average them.

## Why it matters
In a graph of TensorFlow 1, `hvd.DistributedOptimizer` averages in `compute_gradients`; `apply_gradients` is
that of the optimizer inside of it. Gradients that come from `tf.gradients` are never averaged: each process
trains a model of its own, at the speed of one.

## What to do
`optimizer.compute_gradients(loss, tvars)`; clip what it returns.
""",
        check=_past_the_wrapper,
        fires_on={
            "gradients of tf.gradients": (
                _GRAPH,
                "opt.apply_gradients averages nothing: Horovod does that in compute_gradients, and these "
                "gradients are tf.gradients' own: each process trains a model of its own",
            )
        },
        silent_on={
            "gradients of the wrapper": _GRAPH.replace(
                "tf.gradients(loss, tvars)", "[g for g, _ in opt.compute_gradients(loss, tvars)]"
            ),
            "averaged by the script": _GRAPH.replace(
                "tvars)\ntrain", "tvars)\ngrads = [hvd.allreduce(g) for g in grads]\ntrain"
            ),
            "an optimizer of Keras averages where it applies": _GRAPH.replace(
                "tf.train.AdamOptimizer", "tf.keras.optimizers.Adam"
            ),
        },
    ),
    "code115_second_backward": script_rule(
        page="""Two of Horovod's optimizers share a model, and one more backward comes before both step.

## Why it matters
Each backward fills the gradients of the whole model, and Horovod starts an allreduce for each of them. A
second one before the step of an optimizer ends the job: "Gradients were computed more than
backward_passes_per_step times".

## What to do
One backward, then both steps; or one optimizer with two groups of parameters.
""",
        check=_twice_before_the_step,
        fires_on={
            "an optimizer for the body, one for the head": (
                _PARTS,
                "this backward fills the gradients of b once more before it has stepped: Horovod ends the "
                'job with "Gradients were computed more than backward_passes_per_step times"',
            )
        },
        silent_on={
            "both step after one backward": _PARTS.replace(
                "    a.step()\n    loss = model(x).sum()\n    loss.backward()\n", "    a.step()\n"
            ),
            "the optimizers of two models": _PARTS.replace("model.head", "other.head"),
            "two backwards a step are allowed": _PARTS.replace(
                "=model.head.named_parameters()",
                "=model.head.named_parameters(), backward_passes_per_step=2",
            ),
        },
    ),
}
