"""Mistakes in the graphs of distributed scripts of TensorFlow 1: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import call_argument
from allaboard.formats.python.script_rule import script_rule
from allaboard.formats.python.tf1_servers import cluster_jobs, server_script

_VARIABLE_MAKERS = re.compile(
    r"tensorflow\.(?:Variable|get_variable)|tensorflow\.layers\.\w+|tensorflow\.keras\.layers\.\w+"
)
_WORKER_DEVICE = re.compile(r"/job:worker\b")
_FILTERS = re.compile(r"device_filters\s*=\s*\[[^\]]*\]")
"""Matches what a session may reach, which places nothing."""
_SETTER = "tensorflow.train.replica_device_setter"
_BARRIER_NAME = re.compile(r"barrier|sync|wait_?(?:for_?)?all|all_workers", re.I)


def _pinned_to_worker(facts: ScriptFacts) -> Iterator[Claim]:
    script = server_script(facts)
    if script is None or "ps" not in cluster_jobs(script):
        return
    if _FILTERS.sub("", facts.source).count("/job:ps"):
        return
    setters = script.calls_of(_SETTER)
    if any(_knows_servers(setter) for setter in setters):
        return
    for node in ast.walk(script.tree):
        if not isinstance(node, ast.With):
            continue
        context = node.items[0].context_expr
        device = ast.unparse(context)
        if "device(" not in device:
            continue
        if isinstance(context, ast.Call) and len(context.args) == 1:
            device = ast.unparse(resolve(script, context.args[0]))
        if not setters and not _WORKER_DEVICE.search(device):
            continue
        if setters and "replica_device_setter" not in device:
            continue
        variable = next(
            (
                call
                for name, call in script.calls
                if _VARIABLE_MAKERS.fullmatch(name) and node in script.ancestors(call)
            ),
            None,
        )
        if variable is None:
            continue
        yield Claim(
            summary="the variables are on the worker itself: the ps job stays empty, and each worker "
            "trains a model of its own",
            evidence=(script.evidence_for(variable), script.evidence_for(node)),
            fix="with tf.device(tf.train.replica_device_setter("
            'worker_device=f"/job:worker/task:{task_index}", cluster=cluster)):',
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(node),
        )
        return


def _knows_servers(setter: ast.Call) -> bool:
    """Return True if a device setter is told of the ps job: else it places nothing (`ps_tasks` is 0)."""
    return bool(setter.args) or any(k.arg in ("cluster", "ps_tasks", None) for k in setter.keywords)


def _group_as_barrier(facts: ScriptFacts) -> Iterator[Claim]:
    script = server_script(facts)
    if script is None or "SyncReplicasOptimizer" in facts.source or "FIFOQueue" in facts.source:
        return
    for call in script.calls_of("tensorflow.group"):
        parent = script.parents.get(call)
        name = ast.unparse(parent.targets[0]) if isinstance(parent, ast.Assign) else ""
        label = call_argument(call, "name")
        shown = name if _BARRIER_NAME.search(name) else ""
        if isinstance(label, ast.Constant) and _BARRIER_NAME.search(str(label.value)):
            shown = str(label.value)
        if not shown:
            continue
        yield Claim(
            summary=f"tf.group makes {shown} of ops of this worker's own graph: it waits for no other worker",
            evidence=(script.evidence_for(call),),
            fix="tf.train.SyncReplicasOptimizer(opt, replicas_to_aggregate=N, total_num_replicas=N)",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


_HEAD = """import tensorflow as tf
cluster = tf.train.ClusterSpec({"ps": ["p:2222"], "worker": ["a:2222", "b:2222"]})
server = tf.train.Server(cluster, job_name=job, task_index=index)
with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    w = tf.get_variable("w", [10])
"""
_MONITORED = (
    "with tf.train.MonitoredTrainingSession(server.target, index == 0) as s:\n    s.run(train)\n"
)
_SYNC = "opt = tf.train.SyncReplicasOptimizer(opt, 2)\n"

RULES = {
    "code035_variables_on_the_worker": script_rule(
        page="""The variables of a TensorFlow 1 job are pinned to the worker, and its ps job stays empty.

## Why it matters
In between-graph replication, workers share what is on the parameter servers and nothing else. Variables under
`tf.device("/job:worker/task:1")` are that worker's own: N workers train N models, and the servers idle. The
same is true under `replica_device_setter(worker_device=...)`: without `cluster`, it knows of no servers.

## What to do
Build the model under `tf.train.replica_device_setter(...)`, which puts the variables on the ps job.
""",
        check=_pinned_to_worker,
        fires_on={
            "the variables are on the worker's own task": (
                _HEAD.replace(
                    "tf.train.replica_device_setter(cluster=cluster)",
                    '"/job:worker/task:%d" % index',
                )
                + _MONITORED,
                "the variables are on the worker itself: the ps job stays empty, and each worker trains a "
                "model of its own",
            ),
            "a device setter that is not told of any parameter server": (
                _HEAD.replace("cluster=cluster", 'worker_device="/job:worker/task:0"') + _MONITORED,
                "the variables are on the worker itself: the ps job stays empty, and each worker trains a "
                "model of its own",
            ),
        },
        silent_on={
            "a device setter that is given the cluster": _HEAD + _MONITORED,
            "a device setter that is given the number of parameter servers": _HEAD.replace(
                "cluster=cluster", "ps_tasks=1"
            )
            + _MONITORED,
            "a cluster without parameter servers": _HEAD.replace('"ps": ["p:2222"], ', "").replace(
                "tf.train.replica_device_setter(cluster=cluster)", '"/job:worker/task:0"'
            ),
        },
    ),
    "code036_group_as_barrier": script_rule(
        page="""`tf.group` is taken for a barrier between workers.

## Why it matters
`tf.group` makes one op that runs others, in this worker's graph and session. It does not know the other
workers: each goes on as soon as its own ops are done.

## What to do
SyncReplicasOptimizer makes the workers wait for each other in every step. For one meeting, let each worker
enqueue to a shared FIFOQueue, and dequeue as many times as there are workers.
""",
        check=_group_as_barrier,
        fires_on={
            "a `tf.group` that is called `barrier`": (
                _HEAD + "barrier = tf.group(*steps)\n" + _MONITORED,
                "tf.group makes barrier of ops of this worker's own graph: it waits for no other worker",
            )
        },
        silent_on={
            "a `tf.group` that is called `train`": _HEAD + "train = tf.group(a, b)\n" + _MONITORED,
            "a `tf.group` called `sync` beside a SyncReplicasOptimizer": _HEAD
            + _SYNC
            + "sync = tf.group(a, b)\n"
            + _MONITORED,
        },
    ),
}
