"""Whether an exception says that memory could not be had.

The words are the C library's for ENOMEM, PyTorch's allocators', TensorFlow's BFC allocator's and XLA's; NumPy
raises a class of its own of MemoryError.
"""

from __future__ import annotations

import re

from allaboard.facts import Raised

_MEMORY_PHRASES = re.compile(
    r"can't allocate memory|cannot allocate memory|OOM when allocating|\bout of memory\b",
    re.IGNORECASE,
)
_GPU_WORDS = re.compile(r"\bCUDA\b|\bHIP\b|GPU")


def is_out_of_memory(raised: Raised) -> bool:
    """Of the host, or of a device."""
    return raised.type.endswith(("MemoryError", "OutOfMemoryError")) or bool(
        _MEMORY_PHRASES.search(raised.message)
    )


def is_gpu_memory(raised: Raised) -> bool:
    """Whether it is a GPU's memory that could not be had."""
    return bool(_GPU_WORDS.search(raised.message))
