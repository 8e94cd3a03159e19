"""Exceptions that say that memory could not be allocated.

The phrases are those of the C library for ENOMEM, of PyTorch's allocators, TensorFlow's BFC allocator and
XLA. NumPy raises a subclass of MemoryError.
"""

from __future__ import annotations

import re

from allaboard.facts import Raised

_MEMORY_PHRASES = re.compile(
    r"can't allocate memory|cannot allocate memory|OOM when allocating|\bout of memory\b"
    r"|CU(?:BLAS|DNN|SOLVER|SPARSE)_STATUS_ALLOC_FAILED",
    re.IGNORECASE,
)
_GPU_WORDS = re.compile(r"\bCUDA\b|\bHIP\b|GPU")


def is_out_of_memory(raised: Raised) -> bool:
    """Return True if the exception says that memory of the host or of a device ran out."""
    return raised.type.endswith(("MemoryError", "OutOfMemoryError")) or bool(
        _MEMORY_PHRASES.search(raised.message)
    )


def is_gpu_memory(raised: Raised) -> bool:
    """Return True if it is the memory of a GPU that ran out."""
    return bool(_GPU_WORDS.search(raised.message))
