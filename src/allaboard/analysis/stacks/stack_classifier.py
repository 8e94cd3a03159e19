"""Classification of a stack: what a member does at its place in the code, judged by its frames alone.

The table names functions of the frameworks and of the standard library in which a process waits for others.
The innermost frame that the table knows decides; a stack without one is in the user's own code.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from allaboard.analysis.stacks.external_wait import is_external_wait
from allaboard.analysis.stacks.framework_collectives import own_collective_at
from allaboard.facts import Frame, Stack
from allaboard.late_pattern import compile_late


class Spot(StrEnum):
    """Kinds of places in the code; each value is the phrase that reports show."""

    GATE = "held by the roll call"
    INIT = "in the framework's init"
    GROUP = "creating a process group"
    COLLECTIVE = "in a collective"
    STEP = "in a training step"
    SERVER = "serving its peers"
    SESSION = "opening or closing a session with its servers"
    SCHEDULED = "waiting for steps that its workers do"
    DATA = "waiting for data"
    DATA_SERVICE = "waiting for the tf.data service"
    FILE_LOCK = "waiting for a file lock"
    LOCK = "waiting for a lock"
    CHILD = "waiting for a child process"
    ANSWER = "waiting for the answer of another process"
    SLEEP = "asleep"
    INPUT = "waiting for input"
    DEBUGGER = "in a debugger"
    CHECKPOINT = "writing or reading a checkpoint"
    IMPORT = "importing"
    LEAVING = "shutting down"
    USER = "in its own code"
    UNKNOWN = "at an unknown place"


_TABLE: tuple[tuple[str, str, Spot], ...] = (
    # end of the file's path, function (regular expression), what it means
    ("probe/gate.py", "wait", Spot.GATE),
    ("torch/distributed/rendezvous.py", ".*", Spot.INIT),
    ("torch/distributed/distributed_c10d.py", "init_process_group|_new_process_group.*", Spot.INIT),
    ("torch/distributed/distributed_c10d.py", "new_group.*|split_group", Spot.GROUP),
    ("torch/distributed/distributed_c10d.py", "destroy_process_group", Spot.LEAVING),
    ("torch/distributed/distributed_c10d.py", ".*", Spot.COLLECTIVE),
    ("torch/distributed/_functional_collectives.py", ".*", Spot.COLLECTIVE),
    ("torch/distributed/utils.py", "_verify_param_shape_.*|_sync_.*", Spot.COLLECTIVE),
    ("torch/autograd/graph.py", "_engine_run_backward", Spot.STEP),
    ("torch/autograd/__init__.py", "backward", Spot.STEP),
    ("torch/utils/data/dataloader.py", ".*", Spot.DATA),
    ("torch/utils/data/_utils/fetch.py", ".*", Spot.DATA),
    ("torch/serialization.py", ".*", Spot.CHECKPOINT),
    ("torch/distributed/checkpoint/.*", ".*", Spot.CHECKPOINT),
    ("tensorflow/python/eager/context.py", "ensure_initialized|.*configure_coord.*", Spot.INIT),
    ("tensorflow/python/eager/context.py", "enable_collective_ops", Spot.INIT),
    ("tensorflow/python/distribute/.*coordinat.*", "join|.*wait.*", Spot.COLLECTIVE),
    ("tensorflow/python/data/ops/iterator_ops.py", "_next_internal|__next__|get_next.*", Spot.DATA),
    ("tensorflow/python/checkpoint/checkpoint.py", "save|write|restore|read", Spot.CHECKPOINT),
    ("tensorflow/python/eager/execute.py", "quick_execute", Spot.STEP),
    ("tensorflow/python/eager/context.py", "call_function", Spot.STEP),
    ("tensorflow/python/framework/ops.py", "_numpy.*", Spot.STEP),
    ("tensorflow/python/training/server_lib.py", "join", Spot.SERVER),
    ("tensorflow/python/client/session.py", "_call_tf_sessionrun|_run_fn", Spot.STEP),
    ("tensorflow/python/client/session.py", "close|__del__|__init__|_extend_graph", Spot.SESSION),
    ("tensorflow/python/training/session_manager.py", ".*", Spot.SESSION),
    ("tensorflow/python/training/coordinator.py", "join|wait_for_stop", Spot.SESSION),
    ("tensorflow/python/eager/remote.py", "connect_to_.*", Spot.INIT),
    ("horovod/common/basics.py", "init", Spot.INIT),
    ("horovod/common/basics.py", "shutdown", Spot.LEAVING),
    ("horovod/(?:torch|tensorflow|mxnet)/mpi_ops.py", ".*", Spot.COLLECTIVE),
    ("jax/_src/distributed.py", "initialize", Spot.INIT),
    ("jax/_src/distributed.py", "shutdown", Spot.LEAVING),
    ("jax/experimental/multihost_utils.py", ".*", Spot.COLLECTIVE),
    # Orbax's own collectives, below its calls that save and restore; compiling them waits for all, too.
    ("orbax/checkpoint/.*multislice.py", "broadcast_one_replica.*|_merge_.*", Spot.COLLECTIVE),
    ("orbax/checkpoint/.*multihost.*", ".*sync.*|.*barrier.*|broadcast.*", Spot.COLLECTIVE),
    ("orbax/checkpoint/.*|flax/training/checkpoints.py", ".*", Spot.CHECKPOINT),
    ("jax/_src/array.py", ".*", Spot.STEP),
    # Where XLA's CPU client runs a jitted function in the thread of its caller, collectives included.
    ("jax/_src/interpreters/pxla.py", "__call__", Spot.STEP),
    ("jax/_src/pmap.py", "wrapped", Spot.STEP),
    ("jax/_src/api.py", "block_until_ready|device_get", Spot.STEP),
    ("keras/src/backend/jax/core.py", "convert_to_numpy", Spot.STEP),
    ("filelock/.*", "acquire|_acquire", Spot.FILE_LOCK),
    ("portalocker/.*", "lock|acquire", Spot.FILE_LOCK),
    ("python3.*/bdb.py|pdb.py", ".*", Spot.DEBUGGER),
    ("site-packages/(debugpy|pydevd|ipdb|pudb)/.*", ".*", Spot.DEBUGGER),
    ("python3.*/subprocess.py", "_?wait|_try_wait|_?communicate", Spot.CHILD),
    ("python3.*/multiprocessing/popen_fork.py", "wait|poll", Spot.CHILD),
    ("python3.*/threading.py", "_shutdown", Spot.LEAVING),
    ("python3.*/threading.py", "acquire|wait|_wait_for_tstate_lock|join|__enter__", Spot.LOCK),
    # Waits in C for a reader to take something out, which leaves no frame of its own.
    ("python3.*/multiprocessing/queues.py", "put", Spot.LOCK),
    ("<frozen importlib._bootstrap>", "_find_and_load.*|_call_with_frames_removed", Spot.IMPORT),
)
_COMPILED_TABLE = tuple(
    (compile_late(f"(?:^|/)(?:{file})$"), compile_late(f"(?:{function})$"), spot)
    for file, function, spot in _TABLE
)
_WORK_WAIT = compile_late(r"(?<=[\w)\]])(?<!fut)(?<!future)\.wait\s*\(\s*\)")
"""The wait for a collective or message that was started (``async_op``, isend, irecv): of what Python offers
as ``wait()``, PyTorch's Work alone leaves no frame. A future may be an answer of RPC."""
_LINE_SPOTS: tuple[tuple[re.Pattern[str], Spot], ...] = (
    # The source line of the innermost user frame, for waits in C that leave no frame of their own.
    (compile_late(r"\b(flock|lockf)\s*\("), Spot.FILE_LOCK),
    (compile_late(r"\bos\.(system|wait|waitpid)\s*\("), Spot.CHILD),
    (compile_late(r"\bsleep\s*\("), Spot.SLEEP),
    (compile_late(r"\brpc_async\s*\(.*\)\s*\.wait\s*\("), Spot.ANSWER),
    (_WORK_WAIT, Spot.COLLECTIVE),
    (compile_late(r"(?<!\bsys)\.(stdout|stderr)\b"), Spot.CHILD),
    (compile_late(r"\binput\s*\(|\bstdin\b"), Spot.INPUT),
    (compile_late(r"\.acquire\s*\(|^with [\w.\[\]'\"]+\s*:"), Spot.LOCK),  # a bare name blocks in C
)


_DATA_SERVICE = "tensorflow/python/data/experimental/ops/data_service_ops.py"
"""Calls in this file are no training steps: they ask the dispatcher of tf.data's service, and wait for it."""
_THREADED_COLLECTIVES = "tensorflow/python/distribute/cross_device_ops.py"
"""This file calls collectives in threads if no tf.function is around them, and waits for these threads."""
_CLUSTER_COORDINATOR = "tensorflow/python/distribute/coordinator/"
"""In this folder the chief of parameter servers waits for steps that it has handed out: `join`, `fetch`."""
_COMPILED_COLLECTIVE = compile_late(r"\b(_c10d_functional|wait_tensor)\b")


def classify_stack(stack: Stack | None) -> Spot:
    """Return what the member with this stack does; `Spot.UNKNOWN` if there is no stack."""
    if stack is None or not stack.frames:
        return Spot.UNKNOWN
    leaf = stack.frames[0]
    if leaf.is_user:
        for pattern, meaning in _LINE_SPOTS:
            if pattern.search(leaf.text):
                return meaning if not _is_in_data_loader(stack) else Spot.DATA
    # A compiled graph calls collectives through torch/_ops.py, which has no name of the operation: the
    # graph's own source line has it.
    compiled = next((f.text for f in stack.frames if f.is_compiled), "")
    source_line = compiled or (stack.user.text if stack.user is not None else "")
    if leaf.file.endswith("torch/_ops.py") and _COMPILED_COLLECTIVE.search(source_line):
        return Spot.COLLECTIVE  # as compiled graphs call them
    for depth, frame in enumerate(stack.frames):
        known_spot = _spot_of_function(frame.file, frame.function)
        if known_spot is None and not frame.is_user:
            collective = own_collective_at(stack.frames, depth)
            if collective is not None and collective.waits:
                return Spot.COLLECTIVE
        if known_spot is Spot.STEP and any(f.file.endswith(_DATA_SERVICE) for f in stack.frames):
            return Spot.DATA_SERVICE
        # A lock alone says little: the frames around it tell whose lock it is.
        if known_spot is Spot.LOCK:
            return _classify_lock(stack)
        if known_spot is Spot.INIT and any(_makes_group(f) for f in stack.frames):
            return Spot.GROUP  # by the same functions as the first one
        if known_spot is not None:
            return known_spot
    if is_external_wait(stack.frames):
        return Spot.ANSWER
    return Spot.USER if stack.user is not None else Spot.UNKNOWN


def _makes_group(frame: Frame) -> bool:
    return _spot_of_function(frame.file, frame.function) is Spot.GROUP


def _classify_lock(stack: Stack) -> Spot:
    """Return what a thread waits for at one of Python's locks."""
    if _is_in_data_loader(stack):
        return Spot.DATA
    if any(f.file.endswith(_THREADED_COLLECTIVES) for f in stack.frames):
        return Spot.COLLECTIVE
    if any(_CLUSTER_COORDINATOR in f.file for f in stack.frames):
        return Spot.SCHEDULED
    owner = next((f for f in stack.frames if not f.is_standard_library), None)
    if owner is not None and not owner.is_user:
        owners_spot = _spot_of_function(owner.file, owner.function)
        if owners_spot is not None:
            return owners_spot
    return Spot.ANSWER if is_external_wait(stack.frames) else Spot.LOCK


@lru_cache(maxsize=4096)
def _spot_of_function(path: str, name: str) -> Spot | None:
    """Return what the table says of this function. Cached, since all ranks of a job are in the same few."""
    matches = (
        s for file, function, s in _COMPILED_TABLE if function.match(name) and file.search(path)
    )
    return next(matches, None)


def is_inside(stack: Stack | None, spot: Spot) -> bool:
    """Return True if a function that the table lists with this meaning has called what the stack is in."""
    frames = stack.frames if stack is not None else ()
    return any(_spot_of_function(frame.file, frame.function) is spot for frame in frames)


def is_peer_wait(stack: Stack | None) -> bool:
    """Return True if the stack is at a place where a process waits for the other members of its job."""
    return classify_stack(stack) in (
        Spot.GATE,
        Spot.INIT,
        Spot.GROUP,
        Spot.COLLECTIVE,
        Spot.STEP,
        Spot.SERVER,
        Spot.SESSION,
        Spot.SCHEDULED,
    )


def _is_in_data_loader(stack: Stack) -> bool:
    """Return True if a loader waits for its workers: PyTorch's, or an iterator with a queue of its own."""
    if any("torch/utils/data/" in f.file for f in stack.frames):
        return True
    outside = (f for f in stack.frames if not _QUEUE_FILE.search(f.file.replace("\\", "/")))
    reader = next(outside, None)
    through_queue = any(f.file.replace("\\", "/").endswith(_QUEUES) for f in stack.frames)
    return through_queue and reader is not None and reader.function in ("__next__", "__iter__")


_QUEUES = ("/queue.py", "/multiprocessing/queues.py")
_QUEUE_FILE = compile_late(
    r"/python3[^/]*/(?:threading|queue|selectors|multiprocessing/(?:queues|connection))\.py$"
)


_STATE_QUERIES = tuple(
    (compile_late(f"(?:^|[/ ])(?:{file})>?$"), compile_late(f"(?:{function})$"))
    for file, function in (
        (r"genericpath(?:\.py)?", "exists|lexists|isfile|isdir|islink|getsize|getmtime|isjunction"),
        (r"posixpath(?:\.py)?", "exists|lexists|islink|ismount|join|_get_sep"),
        (r"pathlib(?:\.py|/\w+\.py|\._\w+)?", "exists|is_file|is_dir|is_symlink|stat|lstat"),
        (r"pathlib(?:\.py|/\w+\.py|\._\w+)?", "__fspath__|__str__"),
        (r"python3[^/]*/glob\.py", ".*"),
        (r"python3[^/]*/threading\.py", "is_set|is_alive|locked"),
        (r"python3[^/]*/queue\.py", "empty|full|qsize|_qsize"),
        (r"python3[^/]*/subprocess\.py", "poll|_internal_poll"),
        (r"python3[^/]*/multiprocessing/(?:process|queues)\.py", "is_alive|empty|full|qsize"),
        (r"python3[^/]*/concurrent/futures/_base\.py", "done|running|cancelled"),
    )
)
"""Functions of the standard library that return at once. A program that calls one again and again counts as
being at its own line, not in there. Frozen modules have no path."""


def trim_state_queries(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Return the frames without the innermost ones that only query a state for the user's own code.

    A busy wait is sometimes inside the query and sometimes at the line itself; both are one place.
    """
    for depth, frame in enumerate(frames):
        if frame.is_user:
            return frames[depth:]
        if not _is_state_query(frame.file, frame.function):
            break
    return frames


@lru_cache(maxsize=1024)
def _is_state_query(file: str, function: str) -> bool:
    return any(f.search(file) and g.match(function) for f, g in _STATE_QUERIES)


def is_same_place(frames: tuple[Frame, ...], other_frames: tuple[Frame, ...]) -> bool:
    """Return True if two samples show one place: the same functions all the way out.

    The innermost line may differ, as it does in a loop; the lines of the callers may not.
    """
    if frames == other_frames:  # the usual case, decided quickly
        return True
    if len(frames) != len(other_frames) and frames[:1] == other_frames[:1]:
        # A handler that waits for a lock is interrupted again there, and waits once more, further in.
        at_lock = classify_stack(Stack(frames=frames, taken_at=0.0)) is Spot.LOCK
        return at_lock and dict.fromkeys(frames).keys() == dict.fromkeys(other_frames).keys()
    return len(frames) == len(other_frames) and all(
        a.file == b.file and a.function == b.function and (i == 0 or a.line == b.line)
        for i, (a, b) in enumerate(zip(frames, other_frames, strict=True))
    )
