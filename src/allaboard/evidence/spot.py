"""What a member does at its place in the code: told from its frames alone.

The table names functions of the frameworks and of the standard library in which a process waits for
somebody. The innermost frame that the table knows decides; a stack without one is the user's own code.
"""

from __future__ import annotations

import re
from enum import StrEnum

from allaboard.facts import Frame, Stack


class Spot(StrEnum):
    """Kinds of places."""

    GATE = "held by the roll call"
    INIT = "in the framework's init"
    COLLECTIVE = "in a collective"
    STEP = "in a training step"
    SERVER = "serving its peers"
    SESSION = "making or closing a session with its servers"
    DATA = "waiting for data"
    FILE_LOCK = "waiting for a file lock"
    LOCK = "waiting for a lock"
    CHILD = "waiting for a child process"
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
    ("torch/distributed/distributed_c10d.py", "new_group.*|split_group", Spot.INIT),
    ("torch/distributed/distributed_c10d.py", "destroy_process_group", Spot.LEAVING),
    ("torch/distributed/distributed_c10d.py", ".*", Spot.COLLECTIVE),
    ("torch/distributed/_functional_collectives.py", ".*", Spot.COLLECTIVE),
    ("torch/distributed/utils.py", "_verify_param_shape_.*|_sync_.*", Spot.COLLECTIVE),
    ("torch/autograd/graph.py", "_engine_run_backward", Spot.STEP),
    ("torch/utils/data/dataloader.py", ".*", Spot.DATA),
    ("torch/utils/data/_utils/fetch.py", ".*", Spot.DATA),
    ("torch/serialization.py", ".*", Spot.CHECKPOINT),
    ("torch/distributed/checkpoint/.*", ".*", Spot.CHECKPOINT),
    ("tensorflow/python/eager/context.py", "ensure_initialized|.*configure_coord.*", Spot.INIT),
    ("tensorflow/python/eager/context.py", "enable_collective_ops", Spot.INIT),
    ("tensorflow/python/distribute/.*coordinat.*", "join|.*wait.*", Spot.COLLECTIVE),
    ("tensorflow/python/data/ops/iterator_ops.py", "_next_internal|__next__|get_next", Spot.DATA),
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
    ("jax/_src/distributed.py", "initialize", Spot.INIT),
    ("jax/_src/distributed.py", "shutdown", Spot.LEAVING),
    ("filelock/.*", "acquire|_acquire", Spot.FILE_LOCK),
    ("portalocker/.*", "lock|acquire", Spot.FILE_LOCK),
    ("python3.*/bdb.py|pdb.py", ".*", Spot.DEBUGGER),
    ("site-packages/(debugpy|pydevd|ipdb|pudb)/.*", ".*", Spot.DEBUGGER),
    ("python3.*/subprocess.py", "_?wait|_try_wait|_?communicate", Spot.CHILD),
    ("python3.*/multiprocessing/popen_fork.py", "wait|poll", Spot.CHILD),
    ("python3.*/threading.py", "_shutdown", Spot.LEAVING),
    ("python3.*/threading.py", "acquire|wait|_wait_for_tstate_lock|join|__enter__", Spot.LOCK),
    ("<frozen importlib._bootstrap>", "_find_and_load.*|_call_with_frames_removed", Spot.IMPORT),
)
_COMPILED = tuple(
    (re.compile(f"(?:^|/)(?:{file})$"), re.compile(f"(?:{function})$"), spot)
    for file, function, spot in _TABLE
)
_LINES: tuple[tuple[re.Pattern[str], Spot], ...] = (
    # The source line of the innermost user frame, for waits in C that leave no frame of their own.
    (re.compile(r"\b(flock|lockf)\s*\("), Spot.FILE_LOCK),
    (re.compile(r"\bos\.(system|wait|waitpid)\s*\("), Spot.CHILD),
    (re.compile(r"\bsleep\s*\("), Spot.SLEEP),
    (re.compile(r"\b(input|readline)\s*\("), Spot.INPUT),
    (re.compile(r"\.acquire\s*\(|^with [\w.\[\]'\"]+\s*:"), Spot.LOCK),  # a bare name blocks in C
)


def spot(stack: Stack | None) -> Spot:
    """What the member of this stack does; `Spot.UNKNOWN` where there is no stack."""
    if stack is None or not stack.frames:
        return Spot.UNKNOWN
    leaf = stack.frames[0]
    if leaf.is_user:
        for pattern, meaning in _LINES:
            if pattern.search(leaf.text):
                return meaning if not _inside_data(stack) else Spot.DATA
    for frame in stack.frames:
        for file, function, meaning in _COMPILED:
            if function.match(frame.function) and file.search(frame.file):
                if meaning is Spot.LOCK and _inside_data(stack):
                    return Spot.DATA
                return meaning
    return Spot.USER if stack.user is not None else Spot.UNKNOWN


def waits_for_peers(stack: Stack | None) -> bool:
    """Whether it is at a place where a process waits for the other members of its job."""
    return spot(stack) in (
        Spot.GATE,
        Spot.INIT,
        Spot.COLLECTIVE,
        Spot.STEP,
        Spot.SERVER,
        Spot.SESSION,
    )


def _inside_data(stack: Stack) -> bool:
    return any("torch/utils/data/" in f.file for f in stack.frames)


def same_place(one: tuple[Frame, ...], other: tuple[Frame, ...]) -> bool:
    """Whether two looks show one place: the same functions all the way out. The innermost line may
    differ, as it does in a loop; the lines of the callers may not."""
    if len(one) != len(other):
        return False
    return all(
        a.file == b.file and a.function == b.function and (i == 0 or a.line == b.line)
        for i, (a, b) in enumerate(zip(one, other, strict=True))
    )
