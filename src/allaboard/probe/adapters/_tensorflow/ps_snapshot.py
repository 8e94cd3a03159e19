"""`--ps-snapshot` in TensorFlow 1's chief: tells which variables there are, and restores from the newest
snapshot in memory where that is newer than the newest checkpoint. Where a server is on another host, which
cannot read the chief's memory as a file, the variables are initialised with those values instead. Tried on
TensorFlow 2.21's `tf.compat.v1`.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
import time

from ... import member
from . import fed_variables as fed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LISTED = "variables.json"
NEWEST = "snapshot.json"
KINDS = ("Variable", "VariableV2", "VarHandleOp")
AGAIN = ("AbortedError", "UnavailableError")
"""What a server that goes away meanwhile gives: MonitoredTrainingSession itself tries again."""


class _Training:
    """Which snapshots are of the training that runs now. A session that the program has closed ends one: the
    next begins as the program says; snapshots with a number up to ``before`` are of those that are over."""

    def __init__(self) -> None:
        self.over = False
        self.first_own_number = 0


_training = _Training()


def closing(call: Callable[..., Any]) -> Callable[..., Any]:
    """`MonitoredSession._close_internal`, which every end of one comes to; without an exception it is the
    program's own."""
    if not folder():
        return call

    @functools.wraps(call)
    def inside(self: Any, exception_type: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not exception_type:
            _training.over = True
        return call(self, exception_type, *args, **kwargs)

    return inside


def _begins() -> None:
    """The next training has its session. What is read at this moment may be of both."""
    newest = _newest()
    if newest is not None:
        _training.first_own_number = newest["number"] + 1
    _training.over = False


def folder() -> str:
    """Return the folder in memory for snapshots; "" if none are wanted."""
    return os.environ.get("ALLABOARD_BOX", "") if os.environ.get("ALLABOARD_SNAPSHOT") else ""


def restoring(call: Callable[..., Any], cluster: dict[str, str]) -> Callable[..., Any]:
    """`SessionManager.prepare_session`, which the chief calls at its start and after each loss of a server;
    ``cluster`` is what its own server was told."""
    if not folder():
        return call
    signature = inspect.signature(call)

    @functools.wraps(call)
    def inside(*args: Any, **kwargs: Any) -> Any:
        ways = [_from_file, fed.initialised] if _local(cluster) else [fed.initialised]
        if _training.over:
            # The program closed its session: the next training begins with its own values.
            ways = []
        result = None
        for way in ways:
            for _ in range(2):  # the newest may be replaced by a newer one while it is read
                if result is None:
                    result = _restored(way, call, signature, args, kwargs)
        if result is None:
            result = call(*args, **kwargs)
        try:
            if _training.over:
                _begins()
            _tell(args[0]._graph, cluster)
        except Exception as error:
            member.here.note("snapshot", repr(error))
        return result

    return inside


def listing(call: Callable[..., Any], cluster: dict[str, str]) -> Callable[..., Any]:
    """`SessionManager.wait_for_session`, which who is not the chief calls: its graph has the same variables,
    and its host may keep them too. On one host the chief's word is enough."""
    if not folder():
        return call

    @functools.wraps(call)
    def inside(*args: Any, **kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        try:
            if not _local(cluster):
                _tell(args[0]._graph, cluster)
        except Exception as error:
            member.here.note("snapshot", repr(error))
        return result

    return inside


def _local(cluster: dict[str, str]) -> bool:
    """Return True if every task reads the same memory."""
    return all(a.startswith(("127.", "localhost:", "[::1]:")) for a in cluster.values())


def _restored(
    way: Callable[..., Any],
    call: Callable[..., Any],
    signature: inspect.Signature,
    args: Any,
    kwargs: Any,
) -> Any:
    """The session with the values of the newest snapshot; None where it is not to be had so."""
    try:
        arguments = dict(signature.bind(*args, **kwargs).arguments)
        checkpoints = arguments.get("checkpoint_dir")
        newest = _newest()
        if newest is None or newest["number"] <= _training.first_own_number:
            return None
        if _on_disk(checkpoints) >= newest["step"]:
            return None
    except Exception as error:
        member.here.note("snapshot", repr(error))
        return None
    try:
        arguments.update(checkpoint_dir=None, checkpoint_filename_with_path=None)
        result = way(call, arguments, newest["prefix"])
    except Exception as error:
        # A server went away meanwhile: TensorFlow's own retry comes back to here.
        if type(error).__name__ in AGAIN:
            raise
        reason = str(error).partition("\n")[0]
        member.here.note("snapshot", "not restored: number %d: %s" % (newest["number"], reason))
        return None
    if result is not None:
        _remember(arguments.get("saver"), checkpoints)
        restored = {"number": newest["number"], "step": newest["step"], "when": time.monotonic()}
        member.here.note("restored", json.dumps(restored))
    return result


def _from_file(call: Callable[..., Any], arguments: dict[str, Any], prefix: str) -> Any:
    """Restore as from a checkpoint, which every server reads by itself."""
    if arguments.get("saver") is None:
        return None
    return call(**dict(arguments, checkpoint_filename_with_path=prefix))


def _newest() -> dict[str, Any] | None:
    try:
        with open(os.path.join(folder(), NEWEST)) as file:
            newest: dict[str, Any] = json.load(file)
            return newest
    except OSError:
        return None


def _on_disk(checkpoints: str | None) -> int:
    """The step of the newest checkpoint by its name; -1 where there is none or it tells none."""
    if not checkpoints:
        return -1
    step = (_checkpoints().latest_checkpoint(checkpoints) or "").rpartition("-")[2]
    return int(step) if step.isdecimal() else -1


def _checkpoints() -> Any:
    """TensorFlow's own module, which the session manager has imported."""
    return sys.modules["tensorflow.python.checkpoint.checkpoint_management"]


def _remember(saver: Any, checkpoints: str | None) -> None:
    """Let the saver go on deleting the oldest checkpoints, as after a restore from its folder."""
    if not checkpoints or saver is None:
        return
    try:
        state = _checkpoints().get_checkpoint_state(checkpoints)
        if state is not None:
            saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
    except Exception as error:
        member.here.note("snapshot", repr(error))


def _tell(graph: Any, cluster: dict[str, str]) -> None:
    """Leaves the list for the process that reads them; whole or not at all."""
    text = json.dumps(listed(graph, cluster))
    path = os.path.join(folder(), LISTED)
    with open(path + ".new", "w") as file:
        file.write(text)
    os.replace(path + ".new", path)


def listed(graph: Any, cluster: dict[str, str]) -> dict[str, Any]:
    """Every variable as another session must name it, and as a Saver names it in a checkpoint.
    ``unread`` are the names of what a checkpoint holds besides."""
    steps = graph.get_collection("global_step")
    unread = [str(o.name) for o in graph.get_collection("saveable_objects")]
    variables = []
    for variable in graph.get_collection("variables"):
        op = variable.op
        task = _task(str(variable.device))
        if op.type not in KINDS or task not in cluster:
            unread.append(str(op.name))
            continue
        part = getattr(variable, "_save_slice_info", None)
        variables.append(
            {
                "name": str(part.full_name if part is not None else op.name),
                "slice": str(part.spec) if part is not None else "",
                "kind": str(op.type),
                "shared": str(op.get_attr("shared_name").decode() or op.name),
                "container": str(op.get_attr("container").decode()),
                "dtype": str(variable.dtype.base_dtype.name),
                "width": int(variable.dtype.base_dtype.size or 1),
                "shape": variable.shape.as_list(),
                "device": str(variable.device),
                "task": task,
            }
        )
    return {
        "cluster": cluster,
        "variables": variables,
        "unread": unread,
        "step": str(steps[0].op.name) if steps else "",
    }


def _task(device: str) -> str:
    """``ps:0`` of ``/job:ps/replica:0/task:0/device:CPU:0``."""
    parts = dict(p.partition(":")[::2] for p in device.split("/") if ":" in p)
    return "%s:%s" % (parts.get("job", ""), parts.get("task", "0"))
