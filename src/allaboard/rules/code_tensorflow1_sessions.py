"""Mistakes in the sessions of distributed scripts of TensorFlow 1: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.evaluation import evaluate
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule
from allaboard.formats.python.tf1_servers import cluster_jobs, plain_session, server_script

_STARTS_TOKENS = ("get_chief_queue_runner", "get_init_tokens_op", "make_session_run_hook")
"""Methods of SyncReplicasOptimizer by which a script starts its queue of tokens."""
_INITIALISERS = (
    "tensorflow.global_variables_initializer",
    "tensorflow.initialize_all_variables",
)


def _initialised_by_all(facts: ScriptFacts) -> Iterator[Claim]:
    script = server_script(facts)
    if script is not None and "ps" in cluster_jobs(script):
        yield from _all_are_chief(script)
    elif script is None and facts.is_piece and "SyncReplicasOptimizer" in facts.source:
        yield from _all_are_chief(read_script(facts))  # several workers train together
    session = plain_session(script, facts.source) if script is not None else None
    if script is None or session is None or _is_for_one_task(script, session):
        return
    if "report_uninitialized" in facts.source or "ps" not in cluster_jobs(script):
        return
    for run in script.method_calls("run"):
        passed = run.args[0] if run.args else None
        if passed is None and isinstance(run.func, ast.Attribute):
            passed = run.func.value  # init_op.run(), in the default session
        initialiser = resolve(script, passed) if passed is not None else None
        if not isinstance(initialiser, ast.Call):
            continue
        if script.call_name(initialiser.func) not in _INITIALISERS:
            continue
        if _is_for_one_task(script, run):
            return
        yield Claim(
            summary="every worker initialises the variables on the ps again, and undoes what the others have "
            "trained",
            evidence=(script.evidence_for(run), script.evidence_for(session)),
            fix="tf.train.MonitoredTrainingSession(master=server.target, is_chief=(task_index == 0))",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(run),
        )
        return


def _all_are_chief(script: Script) -> Iterator[Claim]:
    """Report a managed session that says `is_chief` of every worker."""
    workers = cluster_jobs(script).get("worker")
    if isinstance(workers, ast.List) and len(workers.elts) < 2:
        return
    for name, call in script.calls:
        short = name.rpartition(".")[2]
        if short not in ("MonitoredTrainingSession", "Supervisor"):
            continue
        chief = call_argument(call, "is_chief", 1 if short == "MonitoredTrainingSession" else 3)
        if any(k.arg is None for k in call.keywords) or _is_for_one_task(script, call):
            continue
        target = call_argument(call, "master", 0) if short == "MonitoredTrainingSession" else None
        joins = "target" in ast.unparse(target) if target is not None else short == "Supervisor"
        if (chief is not None and evaluate(script, chief) is not True) or not joins:
            continue
        yield Claim(
            summary=f"every worker is the chief of its {short}: each initialises or restores the variables "
            "on the ps, and saves",
            evidence=(script.evidence_for(call),),
            fix=f"{ast.unparse(call.func)}(…, is_chief=(task_index == 0))",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _is_for_one_task(script: Script, node: ast.AST) -> bool:
    """Return True if only one task of its job comes to a node. `job_name == "worker"` is not that."""
    for above in script.ancestors(node):
        if isinstance(above, ast.If) and re.search(
            r"task|index|chief|master|rank|initial", ast.unparse(above.test), re.I
        ):
            return True
    return False


def _synchronous_without_chief(facts: ScriptFacts) -> Iterator[Claim]:
    if facts.is_piece:
        return  # what it lacks may stand in the rest of the script
    script = server_script(facts)
    if script is None or "SyncReplicasOptimizer" not in facts.source:
        return
    session = plain_session(script, facts.source)
    optimizers = [c for n, c in script.calls if n.endswith(".SyncReplicasOptimizer")]
    if not optimizers or any(word in facts.source for word in _STARTS_TOKENS):
        return
    if session is None:
        yield from _managed_without_tokens(script, optimizers[0])
        return
    yield Claim(
        summary="SyncReplicasOptimizer needs a chief that hands out tokens, and a plain Session has none: "
        "every worker waits for a token",
        evidence=(script.evidence_for(session), script.evidence_for(optimizers[0])),
        fix="tf.train.MonitoredTrainingSession(master=server.target, is_chief=is_chief, "
        "hooks=[opt.make_session_run_hook(is_chief)])",
        certainty=Certainty.LIKELY,
        where=script.place_of(session),
    )


def _managed_without_tokens(script: Script, optimizer: ast.Call) -> Iterator[Claim]:
    """Report a managed session of a synchronous job to which nobody gives the optimizer's hook."""
    for name, call in script.calls:
        short = name.rpartition(".")[2]
        if short not in ("MonitoredTrainingSession", "Supervisor") or any(
            k.arg is None for k in call.keywords
        ):
            continue
        yield Claim(
            summary=f"SyncReplicasOptimizer needs its queue of tokens to be started, and this {short} is not "
            "told to: every worker waits for a token",
            evidence=(script.evidence_for(call), script.evidence_for(optimizer)),
            fix="tf.train.MonitoredTrainingSession(…, hooks=[opt.make_session_run_hook(is_chief)])",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _no_device_filters(facts: ScriptFacts) -> Iterator[Claim]:
    if facts.is_piece:
        return  # what it lacks may stand in the rest of the script
    script = server_script(facts)
    if script is None or "device_filters" in facts.source or "SyncReplicas" in facts.source:
        return
    yield from _left_by_finished(script)
    workers = cluster_jobs(script).get("worker")
    if (
        "ps" not in cluster_jobs(script)
        or not isinstance(workers, ast.List)
        or len(workers.elts) < 2
    ):
        return
    session = plain_session(script, facts.source)
    if session is None or "replica_device_setter" not in facts.source:
        return
    yield Claim(
        summary="a session without device_filters waits for every task of the cluster: a worker that is down "
        "stops all others",
        evidence=(script.evidence_for(session),),
        fix='tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{task_index}"])',
        severity=Severity.INFO,
        certainty=Certainty.LIKELY,
        where=script.place_of(session),
    )


def _left_by_finished(script: Script) -> Iterator[Claim]:
    """Report a managed session for all tasks where a task ends after its steps and others begin later."""
    jobs = cluster_jobs(script)
    host_lists = [h for j, h in jobs.items() if j != "ps" and isinstance(h, (ast.List, ast.Tuple))]
    if sum(len(h.elts) for h in host_lists) < 3 or not script.calls_of(
        "tensorflow.train.StopAtStepHook", "tensorflow.estimator.StopAtStepHook"
    ):
        return
    for call in script.calls_of("tensorflow.train.MonitoredTrainingSession"):
        keywords = {k.arg for k in call.keywords}
        if (
            {"config", None} & keywords
            or len(call.args) > 7
            or "master" not in keywords | _first(call)
        ):
            continue
        yield Claim(
            summary="this session waits for every task of the cluster, and a task that has done its steps is "
            "gone: one that starts later waits for it for ever",
            evidence=(script.evidence_for(call),),
            fix='config=tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{task_index}"])   '
            "# the job with the variables, and the task itself",
            severity=Severity.INFO,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _first(call: ast.Call) -> set[str | None]:
    return {"master"} if call.args else set()


_HEAD = """import tensorflow as tf
cluster = tf.train.ClusterSpec({"ps": ["p:2222"], "worker": ["a:2222", "b:2222"]})
server = tf.train.Server(cluster, job_name=job, task_index=index)
with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    w = tf.get_variable("w", [10])
"""
_SESSION = """with tf.Session(server.target) as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(train)
"""
_FILTERED = _SESSION.replace("target", "target, config=tf.ConfigProto(device_filters=filters)")
_MONITORED = (
    "with tf.train.MonitoredTrainingSession(server.target, index == 0) as s:\n    s.run(train)\n"
)
_STOPPED = _MONITORED.replace("== 0)", "== 0, hooks=[tf.train.StopAtStepHook(9)])")
_SYNC = "opt = tf.train.SyncReplicasOptimizer(opt, 2)\n"

RULES = {
    "code033_initialised_by_all": script_rule(
        page="""Every worker of a TensorFlow 1 job runs the initialiser of the shared variables.

## Why it matters
The variables are on the parameter servers, and all workers share them. A worker that starts, or starts
again, sets them back to their initial values while the others train: the loss jumps, and checkpoints are
lost. A plain session does not wait for the chief, either.

## What to do
Use MonitoredTrainingSession with `is_chief`: the chief initialises or restores, the others wait for it.
""",
        check=_initialised_by_all,
        fires_on={
            "every worker initialises the variables in a plain Session": (
                _HEAD + _SESSION,
                "every worker initialises the variables on the ps again, and undoes what the others have "
                "trained",
            ),
            "every worker passes `is_chief=True`": (
                _HEAD + _MONITORED.replace("index == 0", "is_chief=True"),
                "every worker is the chief of its MonitoredTrainingSession: each initialises or restores "
                "the variables on the ps, and saves",
            ),
        },
        silent_on={
            "a MonitoredTrainingSession in the process itself, not on the server": _HEAD
            + _MONITORED.replace("server.target, index == 0", "is_chief=True"),
            "only worker 0 initialises the variables": _HEAD
            + _SESSION.replace("    sess.run(tf.g", "    if index == 0:\n        sess.run(tf.g"),
            "a MonitoredTrainingSession whose chief is worker 0": _HEAD + _MONITORED,
            "a session in a script without a cluster": _SESSION,
        },
    ),
    "code034_synchronous_without_chief": script_rule(
        page="""SyncReplicasOptimizer runs in a session without a chief.

## Why it matters
The chief fills the queue of tokens with which workers wait for each other. In a plain `tf.Session` nothing
starts that queue, nor does a managed session without the optimizer's hook: all workers block in their first
`train_op`, without a message.

## What to do
Use MonitoredTrainingSession, with the hook of `make_session_run_hook(is_chief)`.
""",
        check=_synchronous_without_chief,
        fires_on={
            "a SyncReplicasOptimizer with a plain Session": (
                _HEAD + _SYNC + _SESSION,
                "SyncReplicasOptimizer needs a chief that hands out tokens, and a plain Session has none: "
                "every worker waits for a token",
            ),
            "a MonitoredTrainingSession without the hook of the SyncReplicasOptimizer": (
                _HEAD + _SYNC + _MONITORED,
                "SyncReplicasOptimizer needs its queue of tokens to be started, and this "
                "MonitoredTrainingSession is not told to: every worker waits for a token",
            ),
        },
        silent_on={
            "a MonitoredTrainingSession with the hook of the SyncReplicasOptimizer": _HEAD
            + _SYNC
            + _MONITORED.replace("index == 0", "index == 0, hooks=[opt.make_session_run_hook(c)]"),
            "a plain Session, and the script hands out the tokens itself": _HEAD
            + _SYNC
            + "sess.run(opt.get_init_tokens_op())\n"
            + _SESSION,
        },
    ),
    "code037_no_device_filters": script_rule(
        page="""The session of a TensorFlow 1 worker waits for all tasks of the cluster.

## Why it matters
Without `device_filters`, a session connects to every worker, although a worker needs the parameter servers
only. "CreateSession still waiting for response from worker" is printed for ever if any worker is not there,
and one that fails ends the steps of all others. A MonitoredTrainingSession needs the filters, too; it is
reported where a hook ends each task after the last step, so that one that starts late finds others gone.

## What to do
Pass `config=tf.ConfigProto(device_filters=[...])` with the ps job and the worker's own task.
""",
        check=_no_device_filters,
        fires_on={
            "a plain Session without `device_filters`": (
                _HEAD + _SESSION,
                "a session without device_filters waits for every task of the cluster: a worker that is down "
                "stops all others",
            ),
            "a MonitoredTrainingSession without `device_filters`, and tasks that end by their steps": (
                _HEAD.replace('"b:2222"', '"b:2222", "c:2222"') + _STOPPED,
                "this session waits for every task of the cluster, and a task that has done its steps is "
                "gone: one that starts later waits for it for ever",
            ),
        },
        silent_on={
            "a Session with `device_filters`": _HEAD + _FILTERED,
            "a MonitoredTrainingSession with a configuration of its own": _HEAD.replace(
                '"b:2222"', '"b:2222", "c:2222"'
            )
            + _STOPPED.replace("hooks=", "config=c, hooks="),
            "a MonitoredTrainingSession that nothing ends": _HEAD + _MONITORED,
            "synchronous training, which needs all workers anyway": _HEAD + _SYNC + _SESSION,
            "a cluster with one worker": _HEAD.replace(', "b:2222"', "") + _SESSION,
        },
    ),
}
