"""TensorFlow's parameter servers: `Server` and its `join`, and the strategy and coordinator of
TensorFlow 2's chief. Tried on TensorFlow 2.21 and its `tf.compat.v1`.
"""

from __future__ import annotations

import functools

from ... import hooks, member
from . import tf1_sessions
from .cluster_declaration import OWN_CLUSTER, declaration_of_task, jobs_of_cluster
from .variable_placement import hook_creation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _hook_server(module: Any) -> None:
    cls = module.Server
    cls.__init__ = hooks.joining(cls.__init__, _declare_server)
    cls.join = hooks.operation("Server.join", cls.join)


def _declare_server(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Return the declaration in the arguments of `tf.distribute.Server(cluster, job_name,
    task_index)`."""
    names = ("self", "server_or_cluster_def", "job_name", "task_index")
    arguments = dict(zip(names, args), **kwargs)
    spec = arguments["server_or_cluster_def"]
    cluster, job, index = spec, arguments.get("job_name"), arguments.get("task_index")
    if hasattr(spec, "cluster"):  # a ServerDef
        cluster = spec.cluster
        job = job or spec.job_name
        index = spec.task_index if index is None else index
    declaration = declaration_of_task(
        jobs_of_cluster(cluster), job, index, "tf.distribute.Server", "arguments of Server"
    )
    OWN_CLUSTER.update(declaration["cluster"] if declaration is not None else {})
    return declaration


def _hook_strategy(module: Any) -> None:
    cls = module.ParameterServerStrategyV2
    cls.__init__ = hooks.joining(cls.__init__, _declare_chief)
    hook_creation(module)


def _declare_chief(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Return the chief's declaration. It has no Server of its own: it joins where the strategy
    starts."""
    resolver = kwargs.get("cluster_resolver") or args[1]
    jobs = jobs_of_cluster(resolver.cluster_spec())
    job, index = resolver.task_type or "chief", resolver.task_id or 0
    return declaration_of_task(
        jobs, job, index, "ParameterServerStrategy", "cluster_resolver argument"
    )


def _hook_cluster_coordinator(module: Any) -> None:
    """Count each scheduled function as a step: they run on the workers, in no thread of the
    program's own."""
    cls = module.ClusterCoordinator
    schedule = hooks.operation("ClusterCoordinator.schedule", cls.schedule)

    @functools.wraps(schedule)
    def schedule_step(*args: Any, **kwargs: Any) -> Any:
        result = schedule(*args, **kwargs)
        member.step()
        return result

    cls.schedule = schedule_step
    for name in ("join", "fetch"):
        setattr(cls, name, hooks.operation("ClusterCoordinator." + name, getattr(cls, name)))


MODULES = {
    "tensorflow.python.training.server_lib": _hook_server,
    "tensorflow.python.distribute.parameter_server_strategy_v2": _hook_strategy,
    "tensorflow.python.distribute.coordinator.cluster_coordinator": _hook_cluster_coordinator,
    **tf1_sessions.MODULES,
}
