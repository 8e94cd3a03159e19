"""Calls that TensorFlow cannot run where they stand: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts
from allaboard.formats.python.script_ast import call_argument, read_script
from allaboard.formats.python.script_rule import script_rule
from allaboard.formats.python.tf1_servers import server_script

_OF_STRATEGY = re.compile(
    r"tensorflow\.distribute\.(?:\w+\.)*\w*Strategy\(\)\.(?:run|experimental_run_v2)"
)
_DIVIDED_THEMSELVES = ("train_on_batch", "test_on_batch", "predict_on_batch", "fit", "evaluate")
"""Methods of a Keras model that themselves go through the strategy."""
_MANAGED = re.compile(
    r"prepare_or_wait_for_session|managed_session|MonitoredTrainingSession|MonitoredSession"
)
_PLAIN_SESSIONS = ("tensorflow.Session", "tensorflow.compat.v1.Session")


def _run_twice(facts: ScriptFacts) -> Iterator[Claim]:
    if "Strategy(" not in facts.source or not any(m in facts.source for m in _DIVIDED_THEMSELVES):
        return
    script = read_script(facts)
    for name, run in script.calls:
        step = run.args[0] if run.args and _OF_STRATEGY.fullmatch(name) else None
        functions = script.functions_named(step.id) if isinstance(step, ast.Name) else []
        if len(functions) != 1:
            continue
        for call in [n for n in ast.walk(functions[0]) if isinstance(n, ast.Call)]:
            method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            if method not in _DIVIDED_THEMSELVES or "model" not in ast.unparse(call.func).lower():
                continue
            yield Claim(
                summary=f"{method} itself goes through the strategy, and strategy.run calls it in a replica: "
                'TensorFlow ends it with "Method requires being in cross-replica context"',
                evidence=(script.evidence_for(call), script.evidence_for(run)),
                fix="model.fit(dataset, epochs=…)   # in place of strategy.run; or a GradientTape in the "
                "step",
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )
            return


def _other_session(facts: ScriptFacts) -> Iterator[Claim]:
    script = server_script(facts)
    if script is None or not _MANAGED.search(facts.source):
        return
    plain = [
        p
        for c in script.calls_of(*_PLAIN_SESSIONS)
        if call_argument(c, "target", 0) is None and isinstance(p := script.parents[c], ast.Assign)
    ]
    plain_by_name = {ast.unparse(p.targets[0]): p for p in plain}
    for block in [n for n in script.parents if isinstance(n, ast.With)]:
        opened = block.items[0]
        managed = opened.optional_vars
        if not _MANAGED.search(ast.unparse(opened.context_expr)) or managed is None:
            continue
        for call in [n for n in ast.walk(block) if isinstance(n, ast.Call)]:
            owner, _, method = ast.unparse(call.func).rpartition(".")
            if method != "run" or owner not in plain_by_name or owner == ast.unparse(managed):
                continue
            yield Claim(
                summary=f"{owner} is a session of this process alone: it knows no server, and neither the ps "
                f"nor what line {block.lineno} has prepared",
                evidence=(script.evidence_for(call), script.evidence_for(plain_by_name[owner])),
                fix=script.source_line(call).replace(f"{owner}.run", f"{ast.unparse(managed)}.run"),
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )
            return


_REPLICAS = """import tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = build()
def step(batch):
    return model.train_on_batch(*batch)
for batch in strategy.experimental_distribute_dataset(data):
    strategy.run(step, args=(batch,))
"""
_SUPERVISED = """import tensorflow as tf
cluster = tf.train.ClusterSpec({"ps": ps, "worker": workers})
server = tf.train.Server(cluster, job_name=job, task_index=task)
if job == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    train = build()
own = tf.Session()
sv = tf.train.Supervisor(is_chief=task == 0)
with sv.prepare_or_wait_for_session(server.target) as sess:
    own.run(train)
"""

RULES = {
    "code116_fit_in_a_replica": script_rule(
        page="""A method of Keras that uses the strategy itself is called in a replica.

## Why it matters
`fit`, `train_on_batch` and `evaluate` divide their batch over the replicas. Inside of `strategy.run` they
are in a replica already, and TensorFlow raises "Method requires being in cross-replica context".

## What to do
Call `model.fit` on the dataset, without `strategy.run`; or write the step with a GradientTape.
""",
        check=_run_twice,
        fires_on={
            "train_on_batch in the step": (
                _REPLICAS,
                "train_on_batch itself goes through the strategy, and strategy.run calls it in a replica: "
                'TensorFlow ends it with "Method requires being in cross-replica context"',
            )
        },
        silent_on={
            "a step of its own": _REPLICAS.replace("model.train_on_batch(*batch)", "loss(batch)"),
            "train_on_batch outside of run": _REPLICAS.replace(
                "strategy.run(step, args=(batch,))", "step(batch)"
            ),
        },
    ),
    "code117_session_beside": script_rule(
        page="""A script prepares a session on the cluster, and runs its graph in another one.

## Why it matters
`tf.Session()` without a target is a session of this process. It cannot place what is pinned to `/job:ps`,
and it does not see the variables that the Supervisor has initialised.

## What to do
Run everything in the session that `prepare_or_wait_for_session` or `MonitoredTrainingSession` returns.
""",
        check=_other_session,
        fires_on={
            "a session of its own beside a Supervisor": (
                _SUPERVISED,
                "own is a session of this process alone: it knows no server, and neither the ps nor what "
                "line 10 has prepared",
            )
        },
        silent_on={
            "the prepared session": _SUPERVISED.replace("own.run", "sess.run"),
            "the own session is on the server": _SUPERVISED.replace(
                "tf.Session()", "tf.Session(server.target)"
            ),
            "it is used before": _SUPERVISED.replace(
                "    own.run(train)", "    sess.run(train)"
            ).replace("sv =", "own.run(hello)\nsv ="),
        },
    ),
}
