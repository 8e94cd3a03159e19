"""Whether an exception says that the members of one collective did not call the same.

The words are those of TensorFlow 2.21 (its collective parameter resolver and executors) and of gloo
(transport/tcp/pair.cc), which PyTorch and JAX use on CPUs, as they print them.
"""

from __future__ import annotations

import re

from allaboard.facts import Member

_TYPES = {
    "1": "float32", "2": "float64", "3": "int32", "4": "uint8", "6": "int8", "7": "string",
    "9": "int64", "10": "bool", "14": "bfloat16", "19": "float16",
}  # fmt: skip
"""Of tensorflow/core/framework/types.proto."""
_OPERATIONS = {"0": "a reduction", "1": "a broadcast", "2": "a gather", "3": "a permutation",
               "4": "an all-to-all", "5": "a reduce-scatter"}  # fmt: skip
"""CollectiveType of tensorflow/core/framework/collective.h."""
_KINDS = re.compile(
    r"Collective instance (\d+) expected type (\d+) and data[_ ]type (\w+) but got type (\d+) and "
    r"data[_ ]type (\w+)"
)
_SHAPES = re.compile(
    r"Shape mismatch in the collective instance (\d+)\. Op at device \S+ expected shape (\[[\d,]*\]) but "
    r"another member in the group expected shape (\[[\d,]*\])"
)
_BYTES = re.compile(
    r"op\.preamble\.length <= op\.nbytes\. (\d+) vs (\d+)|Received data size doesn't match expected size"
)


def mismatch(member: Member) -> str | None:
    """What the members called, in words: ``a reduction of int64, and a reduction of float32``; None where
    what ended this one says nothing of the kind."""
    if member.raised is not None:
        return described(member.raised.message)
    return described(member.exit.last_line) if member.exit is not None else None


def described(text: str) -> str | None:
    """As `mismatch`, of these words."""
    if found := _KINDS.search(text):
        _, operation, kind, other, wrong = found.groups()
        return f"{_called(operation, kind)}, and {_called(other, wrong)}"
    if found := _SHAPES.search(text):
        return f"a collective of shape {found[2]}, and one of shape {found[3]}"
    if found := _BYTES.search(text):
        sizes = f": {found[2]} bytes were expected, {found[1]} came" if found[1] else ""
        return f"collectives of different sizes{sizes}"
    return None


def _called(operation: str, kind: str) -> str:
    return f"{_OPERATIONS.get(operation, f'type {operation}')} of {_TYPES.get(kind, kind)}"
