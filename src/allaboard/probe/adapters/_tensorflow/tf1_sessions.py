"""TensorFlow 1's sessions: steps, waits at their start and end, and what they are configured with.

Tried on `tf.compat.v1` of TensorFlow 2.21.
"""

from __future__ import annotations

import functools
import os
import threading

from ... import hooks, member
from ...signal_errors import reraise_from_handler
from . import snapshot_restore as snapshot
from . import variable_placement as placement
from .cluster_declaration import OWN_CLUSTER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

RECOVERY_WAIT_POSITION = 4
"""Position of `recovery_wait_secs` among the arguments of SessionManager."""

_monitored_runs = threading.local()
"""Runs of a MonitoredSession that this thread is inside of, as ``depth``."""


def _hook_session(module: Any) -> None:
    """Count every outermost run of a session as a step, except those of a start or a restore."""
    call = module.BaseSession.run

    @functools.wraps(call)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        box = member.here.box
        slot = box.slot() if box is not None else None
        if slot is None:
            return call(self, *args, **kwargs)
        try:
            slot.enter(b"Session.run")
            result = call(self, *args, **kwargs)
        finally:
            slot.leave(b"Session.run")
        if slot.depth == 0 and not getattr(_monitored_runs, "depth", 0):
            member.step()
        return result

    module.BaseSession.run = run
    module.BaseSession.__init__ = _noting_device_filters(module.BaseSession.__init__)
    # `close` waits for an answer of every server, of a dead one for ever.
    module.BaseSession.close = hooks.operation("Session.close", module.BaseSession.close)


def _hook_monitored_session(module: Any) -> None:
    """Count a run of a MonitoredSession as one step together with the runs of its hooks: the hook
    that saves runs the session in every step."""
    call = module._HookedSession.run

    @functools.wraps(call)
    def run(*args: Any, **kwargs: Any) -> Any:
        _monitored_runs.depth = getattr(_monitored_runs, "depth", 0) + 1
        try:
            result = call(*args, **kwargs)
        finally:
            _monitored_runs.depth -= 1
        if not _monitored_runs.depth:
            member.step()
        return result

    module._HookedSession.run = run
    cls = module._MonitoredSession
    cls._close_internal = snapshot.noting_close(cls._close_internal)


def _noting_device_filters(init: Callable[..., None]) -> Callable[..., None]:
    """Wrap the session's init to note which devices it may see: without filters a session waits for
    every task of the cluster."""

    @functools.wraps(init)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        config = kwargs.get("config") or (args[2] if len(args) > 2 else None)
        filters = " ".join(getattr(config, "device_filters", ()))
        if filters and member.here.notes.get("device_filters") != filters:
            member.here.note("device_filters", filters)
        init(self, *args, **kwargs)

    return wrapper


def _hook_thread_coordinator(module: Any) -> None:
    """Hook the wait for a session's threads, which lasts up to two minutes before it is closed."""
    cls = module.Coordinator
    cls.join = hooks.operation("Coordinator.join", cls.join)


def _hook_session_manager(module: Any) -> None:
    cls = module.SessionManager
    for name in ("prepare_session", "recover_session", "wait_for_session"):
        inner = hooks.operation("SessionManager." + name, getattr(cls, name))
        setattr(cls, name, placement.noting_placement(inner))
    cls.prepare_session = snapshot.restoring(cls.prepare_session, OWN_CLUSTER)
    cls.wait_for_session = snapshot.listing_variables(cls.wait_for_session, OWN_CLUSTER)
    cls.__init__ = _with_recovery_wait(cls.__init__)


def _with_recovery_wait(init: Callable[..., None]) -> Callable[..., None]:
    """Shorten a worker's polling for variables if servers may be restarted.

    TensorFlow's own 30 s would be most of the time until it goes on. A program that gives a time
    keeps it.
    """
    wait_s = os.environ.get("ALLABOARD_RECOVERY_WAIT", "")

    @functools.wraps(init)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        is_given = "recovery_wait_secs" in kwargs or len(args) > RECOVERY_WAIT_POSITION
        if wait_s and not is_given:
            self._recovery_wait_secs = float(wait_s)

    return wrapper


def _hook_synchronous_optimizer(module: Any) -> None:
    """Note how many gradients `SyncReplicasOptimizer` needs for a step: it waits for ever if fewer
    workers are there."""
    cls = module.SyncReplicasOptimizer
    call = cls.__init__

    @functools.wraps(call)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        call(self, *args, **kwargs)
        try:
            needed, total = self._replicas_to_aggregate, self._total_num_replicas
            member.here.note("synchronous", "%d of %d" % (needed, total))
        except Exception as error:
            reraise_from_handler(error)
            member.here.note("synchronous", repr(error))

    cls.__init__ = init


MODULES = {
    "tensorflow.python.client.session": _hook_session,
    "tensorflow.python.training.monitored_session": _hook_monitored_session,
    "tensorflow.python.training.session_manager": _hook_session_manager,
    "tensorflow.python.training.coordinator": _hook_thread_coordinator,
    "tensorflow.python.training.device_setter": placement.hook_device_setter,
    "tensorflow.python.training.sync_replicas_optimizer": _hook_synchronous_optimizer,
}
