"""In a custom loop under a strategy, the loss is averaged over the replica's batch alone.

## Why it matters
Gradients are summed over the replicas. With N replicas, a mean over one replica's batch makes the sum N
times too large: the learning rate is N times what you meant, and the loss may diverge.

## What to do
Use `tf.nn.compute_average_loss(per_example, global_batch_size=GLOBAL_BATCH_SIZE)` instead of the mean.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.script_ast import Script, read_script


def check(facts: ScriptFacts) -> Iterator[Claim]:
    script = read_script(facts)
    if not script.strategies or not script.method_calls("run", "experimental_run_v2"):
        return
    if "compute_average_loss" in facts.source or "num_replicas_in_sync" in facts.source:
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
            fix=f"tf.nn.compute_average_loss({ast.unparse(inner)[:60]}, "
            "global_batch_size=GLOBAL_BATCH_SIZE)",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _is_loss(script: Script, mean: ast.Call, inner: ast.expr) -> bool:
    """Return True if the mean is that of a loss under a tape."""
    under = any(
        isinstance(above, ast.With) and "GradientTape" in ast.unparse(above.items[0])
        for above in script.ancestors(mean)
    )
    return under and "loss" in ast.unparse(inner).lower()


_STEP = """import tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
def step(x, y):
    with tf.GradientTape() as tape:
        loss = LOSS
strategy.run(step, args=batch)
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a mean": (
            ScriptFacts(source=_STEP.replace("LOSS", "tf.reduce_mean(loss_object(y, model(x)))")),
            "the loss is the mean over one replica's batch, and gradients are summed over all "
            "replicas",
        )
    },
    silent_on={
        "scaled": ScriptFacts(
            source=_STEP.replace("LOSS", "tf.nn.compute_average_loss(loss_object(y, model(x)))")
        ),
        "a sum over the global batch": ScriptFacts(
            source=_STEP.replace("LOSS", "tf.reduce_sum(loss_object(y, model(x))) / BATCH")
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
