"""Exceptions that say that memory could not be allocated.

The phrases are those of the C library for ENOMEM, of PyTorch's allocators, TensorFlow's BFC allocator and
XLA. NumPy raises a subclass of MemoryError.
"""

from __future__ import annotations

import re

from allaboard.facts import Raised, Who
from allaboard.late_pattern import compile_late

_MEMORY_PHRASES = compile_late(
    r"can't allocate memory|cannot allocate memory|OOM when allocating|\bout of memory\b"
    r"|CU(?:BLAS|DNN|SOLVER|SPARSE)_STATUS_ALLOC_FAILED",
    re.IGNORECASE,
)
_TASK = compile_late(
    r"OOM when allocating tensor[^\n]{0,200}? on /job:(?P<job>(?!localhost)\w+)/(?:replica:\d+/)?"
    r"task:(?P<task>\d{1,7})/"
)
"""TensorFlow's name for the device whose memory ran out; `localhost` is a job without a cluster."""
_GPU_WORDS = compile_late(r"\b(?:CUDA|[Cc]uda|HIP)\b|GPU")


def is_out_of_memory(raised: Raised) -> bool:
    """Return True if the exception says that memory of the host or of a device ran out."""
    return raised.type.endswith(("MemoryError", "OutOfMemoryError")) or bool(
        _MEMORY_PHRASES.search(raised.message)
    )


def task_out_of_memory(raised: Raised) -> Who | None:
    """Return the TensorFlow task whose memory ran out; None if the message names none.

    A session raises in the client what a task of the cluster ran for it.
    """
    match = _TASK.search(raised.message)
    return Who(job=match["job"], index=int(match["task"])) if match is not None else None


def is_gpu_memory(raised: Raised) -> bool:
    """Return True if it is the memory of a GPU that ran out."""
    return bool(_GPU_WORDS.search(raised.message))
