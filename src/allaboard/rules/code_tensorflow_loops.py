"""Mistakes in how scripts drive TensorFlow's strategies: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.flow.execution_order import runs_before
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import (
    Function,
    Script,
    call_argument,
    leaves_block,
    read_script,
)
from allaboard.formats.python.script_rule import script_rule

_PARAMETER_SERVERS = (
    "tensorflow.distribute.ParameterServerStrategy",
    "tensorflow.distribute.experimental.ParameterServerStrategy",
)
_STARTS_SERVERS = re.compile(
    r"\bServer\(|std_server|[Ee]stimator|subprocess|multi_process|multiprocess"
)
_DIVIDED = re.compile(
    r"compute_average_loss|/\s*(?:float\(|tf\.cast\()?\w*global_?batch|\*\s*\(1(?:\.0?)?\s*/\s*\w*global_?batch",
    re.I,
)
"""Matches a loss that is divided by the size of the global batch."""


def _divided_twice(facts: ScriptFacts) -> Iterator[Claim]:
    if ".reduce(" not in facts.source or not _DIVIDED.search(facts.source):
        return
    script = read_script(facts)
    if not script.strategies:
        return
    for call in script.method_calls("reduce"):
        operation, value = call_argument(call, "reduce_op", 0), call_argument(call, "value", 1)
        axis = call_argument(call, "axis", 2)
        if (
            operation is None
            or value is None
            or not ast.unparse(operation).strip("'").endswith("MEAN")
        ):
            continue
        if axis is not None and not (isinstance(axis, ast.Constant) and axis.value is None):
            continue
        run = resolve(script, value)
        if not isinstance(run, ast.Call) or not isinstance(run.func, ast.Attribute) or not run.args:
            continue
        if run.func.attr not in ("run", "experimental_run_v2", "experimental_run"):
            continue
        step = run.args[0]
        functions = script.functions_named(step.id) if isinstance(step, ast.Name) else []
        divided = _divided_loss(functions[0]) if len(functions) == 1 else None
        if divided is None:
            continue
        yield Claim(
            summary="each replica's loss is divided by the global batch already, and MEAN divides by the "
            "replicas again: the loss that is shown is too small by their number",
            evidence=(script.evidence_for(call), script.evidence_for(divided)),
            fix=script.source_line(call).replace("MEAN", "SUM"),
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _divided_loss(function: Function) -> ast.stmt | None:
    """Return the statement that divides what the function returns by the global batch."""
    returned = [
        n.value for n in ast.walk(function) if isinstance(n, ast.Return) and n.value is not None
    ]
    if len(returned) != 1 or not isinstance(returned[0], ast.Name):
        return None
    assignment = [
        n
        for n in ast.walk(function)
        if isinstance(n, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == returned[0].id for t in n.targets)
    ]
    return (
        assignment[0]
        if len(assignment) == 1 and _DIVIDED.search(ast.unparse(assignment[0]))
        else None
    )


def _no_servers(facts: ScriptFacts) -> Iterator[Claim]:
    if facts.is_piece or facts.are_servers_started:
        return  # what it lacks may stand in the rest of the script, or in whoever runs it
    if "ParameterServerStrategy" not in facts.source:
        return
    script = read_script(facts)
    yield from _servers_that_go_on(script)
    if _STARTS_SERVERS.search(facts.source):
        return
    if not script.method_calls("fit", "schedule") or facts.siblings:
        return
    for call in script.calls_of(*_PARAMETER_SERVERS):
        passed = call_argument(call, "cluster_resolver", 0)
        assignment = resolve(script, passed) if passed is not None else None
        if not isinstance(assignment, ast.Call) or not script.call_name(assignment.func).endswith(
            "TFConfigClusterResolver"
        ):
            continue
        if _is_for_one_role(script, call):
            continue
        yield Claim(
            summary="every task that runs this script becomes a coordinator: workers and parameter servers "
            "have to start a server, and nothing here does",
            evidence=(script.evidence_for(call), script.evidence_for(assignment)),
            fix=_server_start(ast.unparse(passed) if isinstance(passed, ast.Name) else "resolver"),
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _servers_that_go_on(script: Script) -> Iterator[Claim]:
    """Report servers that are started and not joined: their tasks come to the strategy, too."""
    servers = script.calls_of("tensorflow.distribute.Server")
    strategies = script.calls_of(*_PARAMETER_SERVERS)
    if len(servers) != 1 or not strategies or script.method_calls("join", "_join", "wait"):
        return
    (server,) = servers
    branch = next((a for a in script.ancestors(server) if isinstance(a, ast.If)), None)
    leaves = script.method_calls("exit", "sleep") or script.calls_of("exit", "sys.exit")
    if branch is None or leaves or leaves_block(branch.body) or branch.orelse:
        return
    if not runs_before(script, server, strategies[0]):
        return
    target = script.parents.get(server)
    name = ast.unparse(target.targets[0]) if isinstance(target, ast.Assign) else "server"
    yield Claim(
        summary="the servers of workers and parameter servers are not joined: their tasks go on, and become "
        "coordinators as well",
        evidence=(script.evidence_for(server), script.evidence_for(strategies[0])),
        fix=f"{name}.join()   # as the last line of the branch of line {branch.lineno}",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(server),
    )


def _is_for_one_role(script: Script, call: ast.Call) -> bool:
    return any(
        isinstance(a, ast.If) and re.search(r"task_type|chief|coordinator|job", ast.unparse(a.test))
        for a in script.ancestors(call)
    )


def _server_start(resolver: str) -> str:
    return (
        f'if {resolver}.task_type in ("worker", "ps"):   # above the strategy\n'
        f"    tf.distribute.Server({resolver}.cluster_spec(), job_name={resolver}.task_type,\n"
        f'                         task_index={resolver}.task_id, protocol="grpc").join()'
    )


_MIRRORED = """import tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
def step(x):
    loss = tf.nn.compute_average_loss(f(x), global_batch_size=GLOBAL_BATCH)
    return loss
losses = strategy.run(step, args=(x,))
print(strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None))
"""
_SERVERS = """import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
strategy = tf.distribute.ParameterServerStrategy(resolver)
model.fit(data)
"""
_WITH_SERVER = _SERVERS.replace(
    "strategy =",
    "if resolver.task_type != 'chief':\n    tf.distribute.Server(spec).join()\nstrategy =",
)
_GOES_ON = """import tensorflow as tf
r = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if r.task_type in ("worker", "ps"):
    s = tf.distribute.Server(r.cluster_spec(), job_name=r.task_type, task_index=r.task_id)
    proto = "grpc"
strategy = tf.distribute.ParameterServerStrategy(r)
"""

RULES = {
    "code049_divided_twice": script_rule(
        page="""A loss that is divided by the global batch is averaged over the replicas once more.

## Why it matters
The replicas' shares of such a loss add up to the mean over the batch. `ReduceOp.MEAN` divides their sum by
the number of replicas: with four GPUs the loss that is printed is a quarter of the one with one GPU, and
early stopping and schedules that read it go wrong. The training itself is right.

## What to do
Reduce it by `tf.distribute.ReduceOp.SUM`.
""",
        check=_divided_twice,
        fires_on={
            "`compute_average_loss`, and then MEAN over the replicas": (
                _MIRRORED,
                "each replica's loss is divided by the global batch already, and MEAN divides by the "
                "replicas again: the loss that is shown is too small by their number",
            )
        },
        silent_on={
            "`compute_average_loss`, and then SUM over the replicas": _MIRRORED.replace(
                "MEAN", "SUM"
            ),
            "`reduce_mean` over the replica's batch, and then MEAN over the replicas": _MIRRORED.replace(
                "tf.nn.compute_average_loss(f(x), global_batch_size=GLOBAL_BATCH)",
                "tf.reduce_mean(f(x))",
            ),
            "MEAN over the examples of the replicas (`axis=0`)": _MIRRORED.replace(
                "axis=None", "axis=0"
            ),
        },
    ),
    "code050_no_servers": script_rule(
        page="""A script for parameter servers starts no server.

## Why it matters
ParameterServerStrategy is for the coordinator alone. Workers and parameter servers run a
`tf.distribute.Server`, and wait in it for what the coordinator sends. If all tasks run one script without
that branch, each makes a strategy and waits for servers that nobody starts.

## What to do
Above the strategy, let tasks of type worker and ps start a server and join it. If workers and parameter
servers run another program, this script is right: ignore the rule there.
""",
        check=_no_servers,
        fires_on={
            "one script for all tasks, in which none starts a server": (
                _SERVERS,
                "every task that runs this script becomes a coordinator: workers and parameter servers have "
                "to start a server, and nothing here does",
            ),
            "workers and parameter servers start a server, and go on": (
                _GOES_ON,
                "the servers of workers and parameter servers are not joined: their tasks go on, and become "
                "coordinators as well",
            ),
        },
        silent_on={
            "workers and parameter servers start a server, and join it": _GOES_ON.replace(
                "proto", "s.join()  # "
            ),
            "all tasks but the chief start a server and join it": _WITH_SERVER,
            "only the chief creates the strategy": "import tensorflow as tf\n"
            "resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()\n"
            "if resolver.task_type == 'chief':\n"
            "    strategy = tf.distribute.ParameterServerStrategy(resolver)\n    model.fit(data)\n",
            "a cluster that the script describes by hand (SimpleClusterResolver)": _SERVERS.replace(
                "TFConfigClusterResolver()", "SimpleClusterResolver(spec)"
            ),
        },
    ),
}
