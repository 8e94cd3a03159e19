"""TensorFlow's parameter servers: `Server` and its `join`, `Session.run` of TF1's workers, and the
strategy and coordinator of TF2's chief. Tried on TensorFlow 2.21 and its `tf.compat.v1`.
"""

from __future__ import annotations

import functools
import os
import threading

from ... import hooks, member
from . import ps_snapshot as snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Placed = dict[str, tuple[int, int]]

PLACES = 32
"""Servers whose variables are noted."""
CLUSTER: dict[str, str] = {}
"""What this process's own server was told: ``ps:0`` and its address."""
WAIT_AT = 4
"""The position of `recovery_wait_secs` among the arguments of SessionManager."""
ORDER = ("chief", "master", "worker", "ps")
"""In which the tasks of a cluster are numbered: those that train before those that serve."""


def _server(module: Any) -> None:
    cls = module.Server
    cls.__init__ = hooks.joining(cls.__init__, _told_server)
    cls.join = hooks.operation("Server.join", cls.join)


def _told_server(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
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
    declaration = declared(
        _jobs(cluster), job, index, "tf.distribute.Server", "arguments of Server"
    )
    CLUSTER.update(declaration["cluster"] if declaration is not None else {})
    return declaration


def _strategy(module: Any) -> None:
    cls = module.ParameterServerStrategyV2
    cls.__init__ = hooks.joining(cls.__init__, _told_strategy)
    _variables(module)


def _told_strategy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The chief has no Server of its own: the strategy's start is where it comes in."""
    resolver = kwargs.get("cluster_resolver") or args[1]
    jobs = _jobs(resolver.cluster_spec())
    job = resolver.task_type or "chief"
    index = resolver.task_id or 0
    return declared(jobs, job, index, "ParameterServerStrategy", "cluster_resolver argument")


def _jobs(cluster: Any) -> dict[str, dict[int, str]]:
    """Job -> index -> address of a ClusterSpec, a ClusterDef or a dict."""
    if hasattr(cluster, "as_dict"):
        cluster = cluster.as_dict()
    if isinstance(cluster, dict):
        return {
            job: dict(tasks) if isinstance(tasks, dict) else dict(enumerate(tasks))
            for job, tasks in cluster.items()
        }
    return {job.name: dict(job.tasks) for job in cluster.job}


def declared(
    jobs: dict[str, dict[int, str]], job: str | None, index: int | None, call: str, origin: str
) -> dict[str, Any] | None:
    """The tasks are numbered through, chief first. None for who is in no cluster of several."""
    names = [j for j in ORDER if j in jobs] + sorted(j for j in jobs if j not in ORDER)
    order = [(j, i) for j in names for i in sorted(jobs[j])]
    index = 0 if index is None else int(index)
    if len(order) < 2 or job is None or (job, index) not in order:
        return None
    addresses = [jobs[j][i] for j, i in order]
    first_job = next((j for j in ("chief", "master") if j in jobs), "worker")
    return {
        "framework": "tensorflow",
        "call": call,
        "rank": order.index((job, index)),
        "world_size": len(order),
        "job": job,
        "index": index,
        "cluster": {"%s:%d" % (j, i): a for (j, i), a in zip(order, addresses)},
        "origin": origin,
        "local": all(a.startswith(("127.", "localhost:", "[::1]:")) for a in addresses),
        # Servers come up in any order by design, and programs wait for them in code of their own:
        # only who would wait for all the others by right may be held.
        "hold": job == first_job,
    }


def _session(module: Any) -> None:
    """Every outermost run of a session is a step; those of a start or a restore are not."""
    call = module.BaseSession.run

    @functools.wraps(call)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        box = member.here.box
        slot = box.slot() if box is not None else None
        if slot is None:
            return call(self, *args, **kwargs)
        slot.enter(b"Session.run")
        try:
            result = call(self, *args, **kwargs)
        finally:
            slot.leave(b"Session.run")
        if slot.depth == 0 and not getattr(_hooked, "depth", 0):
            member.step()
        return result

    module.BaseSession.run = run
    module.BaseSession.__init__ = _with_filters(module.BaseSession.__init__)
    # An answer of every server is waited for, of a dead one for ever.
    module.BaseSession.close = hooks.operation("Session.close", module.BaseSession.close)


def _hooked_session(module: Any) -> None:
    """A MonitoredSession's hooks run the session too (the one that saves does in every step): with the run
    that they belong to they are one step."""
    call = module._HookedSession.run

    @functools.wraps(call)
    def run(*args: Any, **kwargs: Any) -> Any:
        _hooked.depth = getattr(_hooked, "depth", 0) + 1
        try:
            result = call(*args, **kwargs)
        finally:
            _hooked.depth -= 1
        if not _hooked.depth:
            member.step()
        return result

    module._HookedSession.run = run
    cls = module._MonitoredSession
    cls._close_internal = snapshot.closing(cls._close_internal)


_hooked = threading.local()


def _with_filters(init: Callable[..., None]) -> Callable[..., None]:
    """Notes which devices a session is told to see."""

    @functools.wraps(init)
    def inside(self: Any, *args: Any, **kwargs: Any) -> None:
        config = kwargs.get("config") or (args[2] if len(args) > 2 else None)
        filters = " ".join(getattr(config, "device_filters", ()))
        if filters and member.here.notes.get("device_filters") != filters:
            member.here.note("device_filters", filters)
        init(self, *args, **kwargs)

    return inside


def _threads(module: Any) -> None:
    """The end of a session waits for its threads, up to two minutes, before it is closed."""
    cls = module.Coordinator
    cls.join = hooks.operation("Coordinator.join", cls.join)


def _session_manager(module: Any) -> None:
    cls = module.SessionManager
    for name in ("prepare_session", "recover_session", "wait_for_session"):
        inner = hooks.operation("SessionManager." + name, getattr(cls, name))
        setattr(cls, name, _with_placement(inner))
    cls.prepare_session = snapshot.restoring(cls.prepare_session, CLUSTER)
    cls.wait_for_session = snapshot.listing(cls.wait_for_session, CLUSTER)
    cls.__init__ = _with_wait(cls.__init__)


def _with_wait(init: Callable[..., None]) -> Callable[..., None]:
    """Shorten a worker's polling for variables if servers may be restarted.

    TensorFlow's own 30 s would be most of the time until it goes on. A program that gives a time
    keeps it.
    """
    seconds = os.environ.get("ALLABOARD_RECOVERY_WAIT", "")

    @functools.wraps(init)
    def inside(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        if seconds and "recovery_wait_secs" not in kwargs and len(args) <= WAIT_AT:
            self._recovery_wait_secs = float(seconds)

    return inside


def _with_placement(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def inside(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = call(self, *args, **kwargs)
        try:
            placed: Placed = {}
            for variable in self._graph.get_collection("variables"):
                _count(placed, variable)
            _note(placed)
        except Exception as error:
            member.here.note("placement", repr(error))
        return result

    return inside


def _count(placed: Placed, variable: Any) -> None:
    """Adds one variable to those of the task that it is placed on."""
    job, _, task_and_device = str(variable.device).partition("/job:")[2].partition("/")
    index = task_and_device.partition("task:")[2].partition("/")[0]
    size = (variable.shape.num_elements() or 0) * variable.dtype.base_dtype.size
    task = "%s:%s" % (job, index or "0")
    count, total = placed.get(task, (0, 0))
    placed[task] = count + 1, total + size


def _note(placed: Placed) -> None:
    for task in sorted(placed)[:PLACES]:
        member.here.notes["placed on " + task] = "%d variables, %d bytes" % placed[task]
    member.here.identify()


def _variables(module: Any) -> None:
    """TensorFlow 2's chief makes each variable on a server, or in parts on several."""
    cls = module.ParameterServerStrategyV2Extended
    call = cls._create_variable_round_robin
    placed: Placed = {}

    @functools.wraps(call)
    def create(self: Any, *args: Any, **kwargs: Any) -> Any:
        variable = call(self, *args, **kwargs)
        try:
            _count(placed, variable)
            _note(placed)
        except Exception as error:
            member.here.note("placement", repr(error))
        return variable

    cls._create_variable_round_robin = create


def _device_setter(module: Any) -> None:
    """It returns nothing, and places nothing, where there is no ps."""
    call = module.replica_device_setter

    @functools.wraps(call)
    def inside(*args: Any, **kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        if result is None:
            member.here.note("replica_device_setter", "no ps in its cluster")
        return result

    module.replica_device_setter = inside


def _synchronous(module: Any) -> None:
    cls = module.SyncReplicasOptimizer
    call = cls.__init__

    @functools.wraps(call)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        call(self, *args, **kwargs)
        try:
            needed, total = self._replicas_to_aggregate, self._total_num_replicas
            member.here.note("synchronous", "%d of %d" % (needed, total))
        except Exception as error:
            member.here.note("synchronous", repr(error))

    cls.__init__ = init


def _coordinator(module: Any) -> None:
    cls = module.ClusterCoordinator
    # Functions run on the workers, in no thread of the user's: what is scheduled counts as a step.
    schedule = hooks.operation("ClusterCoordinator.schedule", cls.schedule)

    @functools.wraps(schedule)
    def scheduled(*args: Any, **kwargs: Any) -> Any:
        result = schedule(*args, **kwargs)
        member.step()
        return result

    cls.schedule = scheduled
    for name in ("join", "fetch"):
        setattr(cls, name, hooks.operation("ClusterCoordinator." + name, getattr(cls, name)))


MODULES = {
    "tensorflow.python.training.server_lib": _server,
    "tensorflow.python.distribute.parameter_server_strategy_v2": _strategy,
    "tensorflow.python.client.session": _session,
    "tensorflow.python.training.monitored_session": _hooked_session,
    "tensorflow.python.training.session_manager": _session_manager,
    "tensorflow.python.training.coordinator": _threads,
    "tensorflow.python.training.device_setter": _device_setter,
    "tensorflow.python.training.sync_replicas_optimizer": _synchronous,
    "tensorflow.python.distribute.coordinator.cluster_coordinator": _coordinator,
}
