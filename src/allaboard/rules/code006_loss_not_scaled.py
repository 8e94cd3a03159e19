"""In a custom loop under a strategy, the loss is averaged over the replica's batch alone.

## Why it matters
Gradients are summed over the replicas. With N replicas, a mean over one replica's batch makes the sum N
times too large: the learning rate is N times what you meant, and the loss may diverge.

A loss object of Keras takes that mean by itself unless its reduction is none: Keras 2 refuses to be called so
under a strategy, Keras 3 does not notice.

## What to do
Use `tf.nn.compute_average_loss(per_example, global_batch_size=GLOBAL_BATCH_SIZE)` instead of the mean, on a
loss object with `reduction="none"`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.script_ast import Script, read_script

_LOSS_CLASS = re.compile(
    r"(?:tensorflow\.)?keras\.losses\.(?:\w+Crossentropy|Mean\w+|Huber|KLDivergence|LogCosh|Poisson"
    r"|Hinge|SquaredHinge|CosineSimilarity)"
)
_MEAN_REDUCTION = re.compile(r"(?:sum_over_batch_size|auto)\W*$", re.I)
"""Matches the reductions that a loss has by default."""
_DIVIDED_BY_REPLICAS = re.compile(
    r"/\s*(?:float\(|tf\.cast\()?[\w.]*num_replicas_in_sync|/\s*\w*replicas"
)
"""Matches a loss that the script divides by the number of replicas, which is right for a mean."""


def check(facts: ScriptFacts) -> Iterator[Claim]:
    script = read_script(facts)
    # A worker of parameter servers applies its gradients alone: there is one replica.
    if all("ParameterServer" in ast.unparse(call.func) for call in script.strategies):
        return
    # Keras runs the train_step of a model of its own in each replica.
    own_steps = [
        f
        for f in script.functions_named("train_step")
        if isinstance(script.parents.get(f), ast.ClassDef)
    ]
    if not own_steps and not script.method_calls("run", "experimental_run_v2"):
        return
    yield from _default_reductions(script, facts.source)
    if "compute_average_loss" in facts.source or _DIVIDED_BY_REPLICAS.search(facts.source):
        return
    for call in script.calls_of("tensorflow.reduce_mean"):
        inner = call.args[0] if call.args else None
        if inner is None or not _is_loss(script, call, inner):
            continue
        parent = script.parents.get(call)
        if isinstance(parent, ast.BinOp):
            continue  # divided further, by a number that the script computes
        yield Claim(
            summary="the loss is the mean over one replica's batch, and gradients are summed over "
            "all replicas",
            evidence=(script.evidence_for(call), script.evidence_for(script.strategies[0])),
            fix=f"tf.nn.compute_average_loss({ast.unparse(inner)[:60]}, global_batch_size=GLOBAL_BATCH_SIZE)",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _default_reductions(script: Script, source: str) -> Iterator[Claim]:
    """Report loss objects that take the mean themselves, and are called under a tape."""
    if _DIVIDED_BY_REPLICAS.search(source):
        return
    for name, call in script.calls:
        loss_class = _LOSS_CLASS.fullmatch(name)
        parent = script.parents.get(call)
        if loss_class is None or not isinstance(parent, ast.Assign) or call.args[3:]:
            continue
        if any(
            k.arg is None
            or (k.arg == "reduction" and not _MEAN_REDUCTION.search(ast.unparse(k.value)))
            for k in call.keywords
        ):
            continue
        variable = ast.unparse(parent.targets[0])
        uses = [c for _, c in script.calls if ast.unparse(c.func) == variable]
        use = next((u for u in uses if _feeds_gradients(script, u)), None)
        if use is None:
            continue
        kept = [*call.args, *(k for k in call.keywords if k.arg != "reduction")]
        passed = ", ".join(ast.unparse(argument) for argument in kept)[:60]
        yield Claim(
            summary=f"{variable} averages over one replica's batch by itself, and gradients are summed "
            "over all replicas",
            evidence=(script.evidence_for(call), script.evidence_for(use)),
            fix=f'{variable} = {ast.unparse(call.func)}({passed}{", " if passed else ""}reduction="none")'
            "   # then tf.nn.compute_average_loss",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _is_scaled_later(script: Script, loss: ast.Call) -> bool:
    """Return True if a loss is kept in a variable that is then divided or multiplied by something."""
    assigned = script.parents.get(loss)
    name = ast.unparse(assigned.targets[0]) if isinstance(assigned, ast.Assign) else ""
    for node in ast.walk(script.enclosing_function(loss) or script.tree):
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(
            node.op, (ast.Div, ast.Mult)
        ):
            parts = [node.target] if isinstance(node, ast.AugAssign) else [node.left, node.right]
            if name and name in map(ast.unparse, parts):
                return True
    return False


def _is_under_tape(script: Script, node: ast.AST) -> bool:
    return any(
        isinstance(above, ast.With) and "GradientTape" in ast.unparse(above.items[0])
        for above in script.ancestors(node)
    )


def _feeds_gradients(script: Script, use: ast.Call) -> bool:
    """Return True if the loss is computed under a tape, in a function that applies gradients, and is not
    divided there."""
    if isinstance(script.parents.get(use), ast.BinOp) or _is_scaled_later(script, use):
        return False
    function = script.enclosing_function(use)
    return (
        _is_under_tape(script, use)
        and function is not None
        and "apply_gradients" in ast.unparse(function)
    )


def _is_loss(script: Script, mean: ast.Call, inner: ast.expr) -> bool:
    """Return True if the mean is that of a loss under a tape."""
    assigned = script.parents.get(mean)
    function = script.enclosing_function(mean)
    if _is_scaled_later(script, mean):
        return False
    name = ast.unparse(assigned.targets[0]) if isinstance(assigned, ast.Assign) else ""
    final = function.body[-1] if function is not None else None
    is_final = isinstance(final, ast.Return) and name and ast.unparse(final) == f"return {name}"
    if (
        (is_final or isinstance(assigned, ast.Return))
        and function is not None
        and "loss" in function.name
    ):
        # What a function of the script computes is the loss where that is called.
        calls = (script.parents.get(use) for use in script.name_uses(function))
        return any(isinstance(c, ast.Call) and _feeds_gradients(script, c) for c in calls)
    under = _is_under_tape(script, mean)
    return under and any("loss" in text.lower() for text in (ast.unparse(inner), name))


_OWN_STEP = """import tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
class Net(tf.keras.Model):
    def __init__(self):
        self.loss_object = tf.keras.losses.MeanSquaredError()
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.loss_object(y, self(x))
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.v), self.v))
"""
_STEP = """import tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
def step(x, y):
    with tf.GradientTape() as tape:
        loss = LOSS
strategy.run(step, args=batch)
"""
_HELPER = """import tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
batch = 32 * strategy.num_replicas_in_sync
def loss_of(y, x):
    value = tf.reduce_mean(tf.square(y - x))
    return value
def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x))
    opt.apply_gradients(zip(tape.gradient(loss, weights), weights))
strategy.run(step, args=batch)
"""
_OBJECT = """import tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(ARGUMENTS)
def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_object(y, x)
    opt.apply_gradients(zip(tape.gradient(loss, weights), weights))
strategy.run(step, args=batch)
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "the step takes the mean in a function of its own": (
            ScriptFacts(source=_HELPER),
            "the loss is the mean over one replica's batch, and gradients are summed over all replicas",
        ),
        "a loss object with `reduction=SUM_OVER_BATCH_SIZE`": (
            ScriptFacts(
                source=_OBJECT.replace(
                    "ARGUMENTS", "reduction=tf.keras.losses.Reduction.SUM_OVER_BATCH_SIZE"
                )
            ),
            "loss_object averages over one replica's batch by itself, and gradients are summed "
            "over all replicas",
        ),
        "`tf.reduce_mean` of the losses of one replica's batch": (
            ScriptFacts(source=_STEP.replace("LOSS", "tf.reduce_mean(loss_object(y, model(x)))")),
            "the loss is the mean over one replica's batch, and gradients are summed over all replicas",
        ),
        "a loss object with its default reduction, which averages": (
            ScriptFacts(source=_OBJECT.replace("ARGUMENTS", "from_logits=True")),
            "loss_object averages over one replica's batch by itself, and gradients are summed over all "
            "replicas",
        ),
        "a Keras model whose own `train_step` calls a loss object that averages": (
            ScriptFacts(source=_OWN_STEP),
            "self.loss_object averages over one replica's batch by itself, and gradients are summed over all "
            "replicas",
        ),
    },
    silent_on={
        "the mean of a function whose result the step divides by a number of its own": ScriptFacts(
            source=_HELPER.replace("model(x))\n", "model(x))\n        loss = loss / count\n")
        ),
        "a function that computes a metric, outside of the tape": ScriptFacts(
            source=_HELPER.replace("loss = loss_of", "pass\n    metric = loss_of")
        ),
        "a loss object with `reduction=NONE`": ScriptFacts(
            source=_OBJECT.replace("ARGUMENTS", "reduction=tf.keras.losses.Reduction.NONE")
        ),
        "a loss that is also divided by the number of replicas": ScriptFacts(
            source=_OBJECT.replace("y, x)", "y, x) / strategy.num_replicas_in_sync")
        ),
        "a Keras model whose own `train_step` calls a loss object with `reduction='none'`": ScriptFacts(
            source=_OWN_STEP.replace("Error()", "Error(reduction='none')")
        ),
        "a loss object that the step does not call": ScriptFacts(
            source=_OBJECT.replace("ARGUMENTS", "").replace("loss_object(", "model.loss(")
        ),
        "a loss that `tf.nn.compute_average_loss` scales": ScriptFacts(
            source=_STEP.replace("LOSS", "tf.nn.compute_average_loss(loss_object(y, model(x)))")
        ),
        "a sum that is divided by the global batch size": ScriptFacts(
            source=_STEP.replace("LOSS", "tf.reduce_sum(loss_object(y, model(x))) / BATCH")
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
