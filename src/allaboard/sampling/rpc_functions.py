"""The threads of PyTorch's RPC: those that run a function that another process has called, and those that
poll. Pure.

``_run_function`` of ``torch/distributed/rpc/internal.py`` runs every such function, also those of
``remote`` and of an RRef's methods, in a thread that native code started. Tried on torch 2.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from allaboard.facts import Frame, Task

MAX_FUNCTIONS = 16
"""Functions of one process that are kept: RPC has as many threads by default."""
_ENTRY = re.compile(r"(?:^|/)torch/distributed/rpc/internal\.py$")


def rpc_functions(threads: Iterable[tuple[Frame, ...]]) -> tuple[tuple[Frame, ...], ...]:
    """Return the frames (innermost first) of each thread that runs the user's own code for a call of RPC,
    without those of RPC itself."""
    functions = (_function_frames(frames) for frames in threads)
    return tuple(f for f in functions if any(frame.is_user for frame in f))[:MAX_FUNCTIONS]


def polling_cpu(tasks: Iterable[Task]) -> float:
    """Return the CPU time (s) of the threads with which TensorPipe polls, also while there is nothing to do:
    ``TP_SHM_reactor`` and its like (``setThreadName`` in TensorPipe's sources)."""
    return sum(task.cpu for task in tasks if task.name.startswith("TP_"))


def _function_frames(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    for depth in range(len(frames) - 1, -1, -1):
        if frames[depth].function == "_run_function" and _ENTRY.search(frames[depth].file):
            return frames[:depth]
    return ()
