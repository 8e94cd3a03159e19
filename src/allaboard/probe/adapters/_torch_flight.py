"""PyTorch's Flight Recorder, read while the job stands: the collectives that pass no Python function.

The recorder is a ring in C++, which PyTorch 2.13 keeps by default, of gloo too (TORCH_FR_BUFFER_SIZE); its
numbers count every collective of a group, also those of compiled graphs. Only this process can read it, whose
main thread stands in native code then. So a thread waits here for the agent's word. It is there from the
first compiled graph on that calls collectives; no other program has it. It is none of `threading`'s: nobody
who joins all threads waits for it.
"""

from __future__ import annotations

import _thread
import fcntl
import json
import os
import pickle
import sys

from .. import member
from ..calls import FOREIGN
from ..stackdump import FIRST_FD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

ASK, TOLD = ".ask", ".recorded"
"""The pipe by which the agent asks, and the file in which it is answered; the pid stands before."""
LAST = 48
"""Collectives of each group that are told: a compiled graph may have begun many before one is waited for."""
KEPT = ("collective_seq_id", "record_id", "profiling_name", "process_group", "input_sizes",
        "input_dtypes")  # fmt: skip
_listens: list[int] = []
"""The process that does; a forked child has the parent's memory, but not its thread."""


def listen() -> bool:
    """Answers from now on; False where there is no recorder, or nobody who would ask. Raises OSError."""
    native = sys.modules.get("torch._C._distributed_c10d")
    dump = getattr(native, "_dump_fr_trace", None)
    folder, pid = member.here.folder, os.getpid()
    if not callable(dump) or not folder or member.here.box is None:
        return False
    if pid in _listens:
        return True
    _listens[:] = [pid]
    path = os.path.join(folder, "%d%s" % (pid, ASK))
    os.mkfifo(path, 0o600)
    # Also for writing: it never comes to its end when an agent has gone.
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_FD)
    except OSError:  # `ulimit -n` is lower than that
        pass
    else:
        os.close(fd)
        fd = high
    _thread.start_new_thread(_answers, (fd, dump, os.path.join(folder, "%d%s" % (pid, TOLD))))
    return True


def _answers(fd: int, dump: Callable[..., bytes], file: str) -> None:
    try:
        pipe = os.fstat(fd)
        # A program that closes all its files may have one of its own by this number then.
        while os.path.samestat(pipe, os.fstat(fd)) and os.read(fd, 64):
            with open(file + ".new", "w", opener=_private) as answer:
                json.dump(last(pickle.loads(dump(True, True, False))), answer)
            os.replace(file + ".new", file)
    except Exception:
        pass  # closed by the program, or another version's recorder: nobody is answered any more


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def last(dump: dict[str, Any]) -> dict[str, Any]:
    """The last collectives of each group, each with the user's own line alone."""
    kept: dict[object, list[dict[str, Any]]] = {}
    for entry in dump.get("entries", ()):
        if not entry.get("is_p2p"):
            kept.setdefault(str(entry.get("process_group")), []).append(entry)
    told = [_short(entry) for entries in kept.values() for entry in entries[-LAST:]]
    return {"pg_config": dump.get("pg_config", {}), "entries": told}


def _short(entry: dict[str, Any]) -> dict[str, Any]:
    own = (f for f in entry.get("frames", ()) if not _foreign(str(f.get("filename", ""))))
    return {**{key: entry.get(key) for key in KEPT}, "frames": [f for _, f in zip(range(1), own)]}


def _foreign(file: str) -> bool:
    """What a compiler has written (``<eval_with_key>.3``) is nobody's line either."""
    return file[:1] == "<" or "torchinductor_" in file or any(part in file for part in FOREIGN)
