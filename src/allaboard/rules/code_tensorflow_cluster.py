"""Mistakes in how a TensorFlow script describes its cluster: each rule reports one of them."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Mapping

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_RESOLVERS = "tensorflow.distribute.cluster_resolver."
_MULTI_WORKER = "tensorflow.distribute.MultiWorkerMirroredStrategy"
_PARAMETER_SERVER = (
    "tensorflow.distribute.ParameterServerStrategy",
    "tensorflow.distribute.experimental.ParameterServerStrategy",
)
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    _RESOLVERS + "SimpleClusterResolver": (
        "cluster_spec", "master", "task_type", "task_id", "environment", "num_accelerators", "rpc_layer",
    ),
    _RESOLVERS + "TFConfigClusterResolver": ("task_type", "task_id", "rpc_layer", "environment"),
    _RESOLVERS + "SlurmClusterResolver": (
        "jobs", "port_base", "gpus_per_node", "gpus_per_task", "tasks_per_node", "auto_set_gpu",
        "rpc_layer",
    ),
    _MULTI_WORKER: ("cluster_resolver", "communication_options", "communication"),
    "tensorflow.distribute.MirroredStrategy": ("devices", "cross_device_ops"),
    _PARAMETER_SERVER[0]: ("cluster_resolver", "variable_partitioner"),
    _PARAMETER_SERVER[1]: ("cluster_resolver", "variable_partitioner"),
    "tensorflow.train.Server": (
        "server_or_cluster_def", "job_name", "task_index", "protocol", "config", "start",
    ),
    "tensorflow.distribute.Server": (
        "server_or_cluster_def", "job_name", "task_index", "protocol", "config", "start",
    ),
}  # fmt: skip
"""What the constructors take, in TensorFlow 2.0 to 2.21: the signatures in its sources."""
_CORRECT_ARGUMENTS = {
    "workers": "cluster_spec",
    "cluster": "cluster_spec",
    "task_index": "task_id",
    "index": "task_id",
    "job_name": "task_type",
    "resolver": "cluster_resolver",
    "num_gpus": "devices",
}
"""What somebody meant by an argument that is spelled otherwise."""
_CLUSTER_SPEC_EXAMPLE = (
    'tf.train.ClusterSpec({"worker": ["host0:2222", "host1:2222"]}), '
    'task_type="worker", task_id=INDEX'
)
_NAMED_RESOLVERS = tuple(
    _RESOLVERS + name
    for name in (
        "SimpleClusterResolver",
        "SlurmClusterResolver",
        "KubernetesClusterResolver",
        "GCEClusterResolver",
    )
)
"""Resolvers that know a cluster which TF_CONFIG does not state."""


def _unknown_argument(facts: ScriptFacts) -> Iterator[Claim]:
    if "ensorflow" not in facts.source:
        return
    script = read_script(facts)
    for name, call in script.calls:
        taken = _ARGUMENTS.get(name)
        if taken is None:
            continue
        if name in _PARAMETER_SERVER and not call.args and not call.keywords:
            yield from _no_resolver(script, call, facts.source)
            continue
        unknown = next((k for k in call.keywords if k.arg and k.arg not in taken), None)
        if unknown is None or unknown.arg is None:
            continue
        short = name.rpartition(".")[2]
        meant = _meant_argument(unknown.arg, taken)
        if meant == "cluster_spec":
            fix = f"{short}({_CLUSTER_SPEC_EXAMPLE})"
        elif meant:
            fix = f"{short}({meant}={ast.unparse(unknown.value)[:60]})"
        else:
            fix = f"{short}({', '.join(f'{argument}=…' for argument in taken)})"
        yield Claim(
            summary=f"{short} has no argument {unknown.arg!r}; it takes {', '.join(taken)}",
            evidence=(script.evidence_for(call),),
            fix=fix,
            certainty=Certainty.LIKELY,
            where=script.place_of(unknown.value),
        )


def _no_resolver(script: Script, call: ast.Call, source: str) -> Iterator[Claim]:
    """Report a strategy for parameter servers without the resolver that TensorFlow 2 wants.

    That of TensorFlow 1 (`compat.v1`, estimators) reads TF_CONFIG by itself.
    """
    if "ClusterCoordinator" not in source and "DatasetCreator" not in source:
        return
    yield Claim(
        summary="ParameterServerStrategy needs a cluster_resolver: it reads no TF_CONFIG by itself",
        evidence=(script.evidence_for(call),),
        fix=f"{ast.unparse(call.func)}(tf.distribute.cluster_resolver.TFConfigClusterResolver())",
        certainty=Certainty.LIKELY,
        where=script.place_of(call),
    )


def _meant_argument(name: str, taken: tuple[str, ...]) -> str:
    meant = _CORRECT_ARGUMENTS.get(name, "")
    if meant in taken:
        return meant
    return next(iter(difflib.get_close_matches(name, taken, 1)), "")


def _resolver_without_task(facts: ScriptFacts) -> Iterator[Claim]:
    if "SimpleClusterResolver" not in facts.source:
        return
    script = read_script(facts)
    for strategy in script.calls_of(_MULTI_WORKER):
        passed = _passed_resolver(strategy)
        resolver = resolve(script, passed) if passed is not None else None
        if not isinstance(resolver, ast.Call):
            continue
        if script.call_name(resolver.func) != _RESOLVERS + "SimpleClusterResolver":
            continue
        if any(k.arg is None for k in resolver.keywords) or _sets_task(script, passed):
            continue
        missing = [
            argument
            for argument, position in (("task_type", 2), ("task_id", 3))
            if call_argument(resolver, argument, position) is None
        ]
        if not missing:
            continue
        cluster = ast.unparse(resolver.args[0])[:60] if resolver.args else "cluster_spec"
        yield Claim(
            summary=f"the resolver does not say which task this process is: {' and '.join(missing)} "
            f"{'are' if len(missing) > 1 else 'is'} not passed",
            evidence=(script.evidence_for(resolver), script.evidence_for(strategy)),
            fix=f'SimpleClusterResolver({cluster}, task_type="worker", '
            'task_id=int(os.environ["WORKER_INDEX"]))',
            certainty=Certainty.LIKELY,
            where=script.place_of(resolver),
        )


def _passed_resolver(strategy: ast.Call) -> ast.expr | None:
    return call_argument(strategy, "cluster_resolver", 0) or call_argument(
        strategy, "cluster_resolver", 1
    )


def _sets_task(script: Script, resolver: ast.expr | None) -> bool:
    """Return True if the script gives the resolver its task later: ``resolver.task_id = …``."""
    name = ast.unparse(resolver) if resolver is not None else ""
    return any(
        isinstance(n, ast.Attribute)
        and isinstance(n.ctx, ast.Store)
        and n.attr in ("task_id", "task_type")
        and ast.unparse(n.value) == name
        for n in script.parents
    )


def _resolver_not_passed(facts: ScriptFacts) -> Iterator[Claim]:
    if "ClusterResolver" not in facts.source or "TF_CONFIG" in facts.source:
        return
    script = read_script(facts)
    resolvers = script.calls_of(*_NAMED_RESOLVERS)
    strategies = script.calls_of(_MULTI_WORKER, *_PARAMETER_SERVER)
    if not resolvers or not strategies:
        return
    strategy = strategies[0]
    takes_none = not strategy.args and not any(
        k.arg is None or "resolver" in k.arg for k in strategy.keywords
    )
    if len(strategies) > 1 or not takes_none:
        return
    parent = script.parents.get(resolvers[0])
    variable = (
        ast.unparse(parent.targets[0])
        if isinstance(parent, ast.Assign)
        else script.source_line(resolvers[0])
    )
    kept = ", ".join(["", *(ast.unparse(k) for k in strategy.keywords)])
    yield Claim(
        summary="the strategy is created without the resolver: it reads TF_CONFIG alone, so each task would "
        "train by itself",
        evidence=(script.evidence_for(strategy), script.evidence_for(resolvers[0])),
        fix=f"{ast.unparse(strategy.func)}(cluster_resolver={variable}{kept})",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(strategy),
    )


_IMPORT = "import tensorflow as tf\nfrom tensorflow.distribute import cluster_resolver as cr\n"
_STRATEGY = "s = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=r)\n"
_SIMPLE = _IMPORT + "r = cr.SimpleClusterResolver(cluster)\n"
_SLURM = _IMPORT + "r = cr.SlurmClusterResolver()\n"

_COORDINATED = (
    _IMPORT + "s = tf.distribute.ParameterServerStrategy(RESOLVER)\n"
    "c = tf.distribute.coordinator.ClusterCoordinator(s)\n"
)

RULES = {
    "code021_unknown_argument": script_rule(
        page="""A resolver or a strategy gets an argument that it does not take.

## Why it matters
The call raises a TypeError, on every task, before anything is set up. Addresses are not an argument of a
strategy: they are a ClusterSpec, in a resolver, and the resolver goes to the strategy.

## What to do
Write the arguments as shown.
""",
        check=_unknown_argument,
        fires_on={
            "ParameterServerStrategy without a cluster resolver": (
                _COORDINATED.replace("RESOLVER", ""),
                "ParameterServerStrategy needs a cluster_resolver: it reads no TF_CONFIG by itself",
            ),
            "SimpleClusterResolver with the argument `workers`": (
                _IMPORT + "r = cr.SimpleClusterResolver(workers=hosts)\n",
                "SimpleClusterResolver has no argument 'workers'; it takes cluster_spec, master, task_type, "
                "task_id, environment, num_accelerators, rpc_layer",
            ),
            "MultiWorkerMirroredStrategy with `resolver` instead of `cluster_resolver`": (
                _IMPORT + "s = tf.distribute.MultiWorkerMirroredStrategy(resolver=r)\n",
                "MultiWorkerMirroredStrategy has no argument 'resolver'; it takes cluster_resolver, "
                "communication_options, communication",
            ),
        },
        silent_on={
            "ParameterServerStrategy with a cluster resolver": _COORDINATED.replace(
                "RESOLVER", "r"
            ),
            "a resolver and a strategy with documented arguments": _IMPORT
            + "r = cr.SimpleClusterResolver(c, task_type='worker', task_id=i, rpc_layer='grpc')\n"
            + _STRATEGY,
            "MirroredStrategy of TensorFlow 1, which takes `num_gpus`": "import tensorflow as tf\n"
            "s = tf.contrib.distribute.MirroredStrategy(num_gpus=2)\n",
        },
    ),
    "code022_resolver_without_task": script_rule(
        page="""A resolver lists the cluster, but not which of its tasks this process is.

## Why it matters
MultiWorkerMirroredStrategy raises ValueError: "When `cluster_spec` is given, you must also specify
`task_type` and `task_id`". Only the launcher knows the index: it differs between the processes that run
this file.

## What to do
Pass `task_type` and `task_id`, the index from the environment or an argument.
""",
        check=_resolver_without_task,
        fires_on={
            "SimpleClusterResolver without `task_type` and `task_id`": (
                _SIMPLE + _STRATEGY,
                "the resolver does not say which task this process is: task_type and task_id are not passed",
            ),
            "SimpleClusterResolver with `task_type` and without `task_id`": (
                _SIMPLE.replace("(cluster)", "(cluster, task_type='worker')") + _STRATEGY,
                "the resolver does not say which task this process is: task_id is not passed",
            ),
        },
        silent_on={
            "SimpleClusterResolver with the task's type and id": _SIMPLE.replace(
                "(cluster)", "(cluster, '', 'worker', i)"
            )
            + _STRATEGY,
            "the task's type and id are set on the resolver later": _SIMPLE
            + "r.task_type, r.task_id = 'worker', i\n"
            + _STRATEGY,
            "SimpleClusterResolver for the coordinator of a ParameterServerStrategy": _SIMPLE
            + "s = tf.distribute.ParameterServerStrategy(r)\n",
        },
    ),
    "code023_resolver_not_passed": script_rule(
        page="""A resolver is made, and the strategy does not get it.

## Why it matters
A strategy without a resolver reads TF_CONFIG. Where that is not set, MultiWorkerMirroredStrategy takes this
process for the only worker and trains alone, without a message: N tasks train N models.
`experimental_connect_to_cluster` does not change that.

## What to do
Pass the resolver to the strategy.
""",
        check=_resolver_not_passed,
        fires_on={
            "a SlurmClusterResolver, and a strategy without it": (
                _SLURM + "s = tf.distribute.MultiWorkerMirroredStrategy()\n",
                "the strategy is created without the resolver: it reads TF_CONFIG alone, so each task would "
                "train by itself",
            )
        },
        silent_on={
            "the resolver is passed to the strategy": _SLURM + _STRATEGY,
            "the script writes TF_CONFIG from the resolver": _SLURM
            + "import os\nos.environ['TF_CONFIG'] = text(r)\n"
            "s = tf.distribute.MultiWorkerMirroredStrategy()\n",
            "a resolver beside MirroredStrategy, which works on one host": _SLURM
            + "s = tf.distribute.MirroredStrategy()\n",
        },
    ),
}
