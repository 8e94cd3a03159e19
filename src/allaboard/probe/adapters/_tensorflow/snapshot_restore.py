"""`--ps-snapshot` in TensorFlow 1's chief: variables come back from the newest snapshot in memory.

The chief lists the variables for the process that snapshots them. When it prepares a session, it
restores from the snapshot if that is newer than the newest checkpoint. Servers on other hosts cannot
read the chief's memory as a file: there the variables are initialised with those values instead.
Tried on TensorFlow 2.21's `tf.compat.v1`.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
import time

from ... import member
from ...signal_errors import reraise_from_handler
from .cluster_declaration import is_on_one_host
from .fed_variables import prepare_with_values
from .variable_list import write_variable_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Prepare = Callable[..., Any]
    """`SessionManager.prepare_session`, or a way to call it."""

SNAPSHOT_NAME = "snapshot.json"
LOST_SERVER_ERRORS = ("AbortedError", "UnavailableError")
"""What TensorFlow raises if a server goes away meanwhile: MonitoredTrainingSession tries again."""
READ_TRIES = 2
"""The newest snapshot may be replaced by a newer one while it is read."""


class _CurrentTraining:
    """Which snapshots belong to the training that runs now.

    A session that the program has closed ends one: the next begins as the program says.
    """

    is_closed = False
    """True from the program's own close until the next session."""
    last_foreign_number = 0
    """Number up to which snapshots may hold values of an earlier training; 0 before the second."""


_training = _CurrentTraining()


def snapshot_folder() -> str:
    """Return the folder in memory for snapshots; "" if none are wanted."""
    return os.environ.get("ALLABOARD_BOX", "") if os.environ.get("ALLABOARD_SNAPSHOT") else ""


def noting_close(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `MonitoredSession._close_internal`, with which every session ends; without an exception
    the program itself closed it."""
    if not snapshot_folder():
        return call

    @functools.wraps(call)
    def wrapper(self: Any, exception_type: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not exception_type:
            _training.is_closed = True
        return call(self, exception_type, *args, **kwargs)

    return wrapper


def _begin_training() -> None:
    """Begin the next training. A snapshot that is there by now may mix values of both."""
    newest = _read_newest()
    if newest is not None:
        _training.last_foreign_number = newest["number"] + 1
    _training.is_closed = False


def restoring(call: Prepare, cluster: dict[str, str]) -> Prepare:
    """Wrap `SessionManager.prepare_session`, which the chief calls at its start and after each loss
    of a server; ``cluster`` is what its own server was given."""
    if not snapshot_folder():
        return call
    signature = inspect.signature(call)

    @functools.wraps(call)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        is_one_host = is_on_one_host(list(cluster.values()))
        ways = [_prepare_from_file, prepare_with_values] if is_one_host else [prepare_with_values]
        if _training.is_closed:
            ways = []
        session = None
        for way in ways:
            for _ in range(READ_TRIES):
                if session is None:
                    session = _restore_session(way, call, signature, args, kwargs)
        if session is None:
            session = call(*args, **kwargs)
        try:
            if _training.is_closed:
                _begin_training()
            write_variable_list(snapshot_folder(), args[0]._graph, cluster)
        except Exception as error:
            reraise_from_handler(error)
            member.here.note("snapshot", repr(error))
        return session

    return wrapper


def listing_variables(call: Callable[..., Any], cluster: dict[str, str]) -> Callable[..., Any]:
    """Wrap `SessionManager.wait_for_session`, which every task but the chief calls.

    Its graph has the same variables, and its host may keep snapshots too. On one host the chief's
    list is enough.
    """
    if not snapshot_folder():
        return call

    @functools.wraps(call)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        session = call(*args, **kwargs)
        try:
            if not is_on_one_host(list(cluster.values())):
                write_variable_list(snapshot_folder(), args[0]._graph, cluster)
        except Exception as error:
            reraise_from_handler(error)
            member.here.note("snapshot", repr(error))
        return session

    return wrapper


def _restore_session(
    way: Prepare, call: Prepare, signature: inspect.Signature, args: Any, kwargs: Any
) -> Any:
    """Return the session with the values of the newest snapshot; None if it cannot be had in this
    way, or a checkpoint is as new."""
    try:
        arguments = dict(signature.bind(*args, **kwargs).arguments)
        checkpoint_folder = arguments.get("checkpoint_dir")
        newest = _read_newest()
        if newest is None or newest["number"] <= _training.last_foreign_number:
            return None
        if _newest_checkpoint_step(checkpoint_folder) >= newest["step"]:
            return None
    except Exception as error:
        reraise_from_handler(error)
        member.here.note("snapshot", repr(error))
        return None
    try:
        arguments.update(checkpoint_dir=None, checkpoint_filename_with_path=None)
        session = way(call, arguments, newest["prefix"])
    except Exception as error:
        # TensorFlow's own retry comes back to here.
        if type(error).__name__ in LOST_SERVER_ERRORS:
            raise
        reraise_from_handler(error)
        reason = str(error).partition("\n")[0]
        member.here.note("snapshot", "not restored: number %d: %s" % (newest["number"], reason))
        return None
    if session is not None:
        _recover_saver(arguments.get("saver"), checkpoint_folder)
        restored = {"number": newest["number"], "step": newest["step"], "when": time.monotonic()}
        member.here.note("restored", json.dumps(restored))
    return session


def _prepare_from_file(call: Prepare, arguments: dict[str, Any], prefix: str) -> Any:
    """Prepare the session as from a checkpoint, which every server reads by itself."""
    if arguments.get("saver") is None:
        return None
    return call(**dict(arguments, checkpoint_filename_with_path=prefix))


def _read_newest() -> dict[str, Any] | None:
    """Return number, step and path prefix of the newest snapshot; None without one."""
    try:
        with open(os.path.join(snapshot_folder(), SNAPSHOT_NAME)) as file:
            newest: dict[str, Any] = json.load(file)
            return newest
    except OSError:
        return None


def _newest_checkpoint_step(folder: str | None) -> int:
    """Return the step in the name of the newest checkpoint; -1 if there is none in it."""
    if not folder:
        return -1
    step = (_checkpoint_management().latest_checkpoint(folder) or "").rpartition("-")[2]
    return int(step) if step.isdecimal() else -1


def _checkpoint_management() -> Any:
    """Return TensorFlow's own module, which the session manager has imported."""
    return sys.modules["tensorflow.python.checkpoint.checkpoint_management"]


def _recover_saver(saver: Any, checkpoint_folder: str | None) -> None:
    """Let the saver go on deleting the oldest checkpoints, as after a restore from its folder."""
    if not checkpoint_folder or saver is None:
        return
    try:
        state = _checkpoint_management().get_checkpoint_state(checkpoint_folder)
        if state is not None:
            saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
    except Exception as error:
        reraise_from_handler(error)
        member.here.note("snapshot", repr(error))
