"""PyTorch's Flight Recorder, read while the job stands: the collectives that pass no Python function.

The recorder is a ring in C++, which PyTorch 2.13 keeps by default, of gloo too (TORCH_FR_BUFFER_SIZE); its
numbers count every collective of a group, also those of compiled graphs. Only this process can read it, whose
main thread stands in native code then. So a thread waits here for the agent's word. It is there from the
first compiled graph on that calls collectives, and in programs that use NCCL, whose calls return before they
are over; no other program has it. It is none of `threading`'s: nobody who joins all threads waits for it.
Builds with CUDA keep another recorder for NCCL, which also tells the state of each call: "completed", or
"scheduled" while it is on the GPU's queue (tried with PyTorch 2.11 and NCCL 2.28.9 on an H200).
"""

from __future__ import annotations

import _thread
import json
import os
import pickle
import sys

from ... import member
from ...collective_calls import is_foreign_file
from ...stackdump import move_descriptor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

ASK, ANSWER = ".ask", ".recorded"
"""The pipe by which the agent asks, and the file in which it is answered; the pid stands before."""
MAX_COLLECTIVES = 48
"""Collectives of each group that are reported: a compiled graph may begin many before one is waited for."""
NCCL_MARK = "(NCCL)"
"""End of the name of a group whose collectives NCCL's recorder has kept."""
KEPT_FIELDS = (
    "collective_seq_id",
    "record_id",
    "profiling_name",
    "process_group",
    "state",
    "input_sizes",
    "input_dtypes",
)
DUMPS = ("_dump_fr_trace", "_dump_nccl_trace")
"""Of two recorders the numbers of a group are two."""
_listening_pids: list[int] = []
"""The process that does; a forked child has the parent's memory, but not its thread."""


def listen() -> bool:
    """Answer from now on. Return False if there is no recorder, or no agent that asks. Raises OSError."""
    native = sys.modules.get("torch._C._distributed_c10d")
    dumps = [d for name in DUMPS if callable(d := getattr(native, name, None))]
    folder, pid = member.here.folder, os.getpid()
    if not dumps or not folder or member.here.box is None:
        return False
    if pid in _listening_pids:
        return True
    _listening_pids[:] = [pid]
    path = os.path.join(folder, "%d%s" % (pid, ASK))
    os.mkfifo(path, 0o600)
    # Also for writing: it never comes to its end when an agent has gone.
    fd = move_descriptor(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    _thread.start_new_thread(
        _answer_requests, (fd, dumps, os.path.join(folder, "%d%s" % (pid, ANSWER)))
    )
    return True


def listen_or_not() -> None:
    """Answer from now on, if that is possible here."""
    try:
        listen()
    except OSError:
        pass  # the run folder has gone, or is full: only the state of queued calls is not known


def _answer_requests(fd: int, dumps: list[Callable[..., bytes]], file: str) -> None:
    try:
        pipe = os.fstat(fd)
        # A program that closes all its files may have one of its own by this number then.
        while os.path.samestat(pipe, os.fstat(fd)) and os.read(fd, 64):
            with open(file + ".new", "w", opener=_private) as answer:
                records = [pickle.loads(dump(True, True, False)) for dump in dumps]
                json.dump(
                    {"entries": [e for record in records for e in last_collectives(record)]}, answer
                )
            os.replace(file + ".new", file)
    except Exception:
        pass  # closed by the program, or another version's recorder: nobody is answered any more


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def last_collectives(dump: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the last collectives of each group, each with the user's own line alone."""
    by_group: dict[object, list[dict[str, Any]]] = {}
    for entry in dump.get("entries", ()):
        if not entry.get("is_p2p"):
            by = str(entry.get("profiling_name")).partition(":")[0]
            by_group.setdefault((by, str(entry.get("process_group"))), []).append(entry)
    return [
        _shorten_entry(entry)
        for entries in by_group.values()
        for entry in entries[-MAX_COLLECTIVES:]
    ]


def _shorten_entry(entry: dict[str, Any]) -> dict[str, Any]:
    user_frames = (
        f for f in entry.get("frames", ()) if not _is_not_the_users(str(f.get("filename", "")))
    )
    short_entry = {
        **{key: entry.get(key) for key in KEPT_FIELDS},
        "frames": [f for _, f in zip(range(1), user_frames)],
    }
    name, *description = short_entry["process_group"] or ("?",)
    if str(short_entry["profiling_name"]).startswith("nccl:"):
        short_entry["process_group"] = [name, " ".join([*map(str, description), NCCL_MARK])]
    return short_entry


def _is_not_the_users(file: str) -> bool:
    """Return True for a file that is not the user's; what a compiler has written
    (``<eval_with_key>.3``) is nobody's line either."""
    return file[:1] == "<" or "torchinductor_" in file or is_foreign_file(file)
