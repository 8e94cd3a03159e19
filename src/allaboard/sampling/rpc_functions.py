"""The threads in which PyTorch's RPC runs a function that another process has called. Pure.

``_run_function`` of ``torch/distributed/rpc/internal.py`` runs every such function, also those of
``remote`` and of an RRef's methods, in a thread that native code started. Tried on torch 2.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from allaboard.facts import Frame

MAX_FUNCTIONS = 16
"""Functions of one process that are kept: RPC has as many threads by default."""
_ENTRY = re.compile(r"(?:^|/)torch/distributed/rpc/internal\.py$")


def rpc_functions(threads: Iterable[tuple[Frame, ...]]) -> tuple[tuple[Frame, ...], ...]:
    """Return the frames (innermost first) of each thread that runs the user's own code for a call of RPC,
    without those of RPC itself."""
    functions = (_function_frames(frames) for frames in threads)
    return tuple(f for f in functions if any(frame.is_user for frame in f))[:MAX_FUNCTIONS]


def _function_frames(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    for depth in range(len(frames) - 1, -1, -1):
        if frames[depth].function == "_run_function" and _ENTRY.search(frames[depth].file):
            return frames[:depth]
    return ()
