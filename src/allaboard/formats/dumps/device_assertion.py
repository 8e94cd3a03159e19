"""The lines that a kernel on a GPU prints when an assertion in it fails, one for each thread that met it.

The format is that of CUDA's ``assert`` (CUDA C++ Programming Guide, "Assertion"), as PyTorch 2.11 on an H200
printed it.
"""

from __future__ import annotations

import re

from allaboard.late_pattern import compile_late

_LINE = compile_late(
    r"(?P<file>[^\s:]{1,300}):(?P<line>\d{1,6}): (?P<kernel>[^\n]{1,2000}?): block: \[\d+,\d+,\d+\], "
    r"thread: \[\d+,\d+,\d+\] Assertion `(?P<condition>[^\n]{1,300}?)`? failed\."
)
MARK = b", thread: ["
"""Bytes that each such line has."""


def find_device_assertion(text: str) -> str:
    """Return kernel, place and condition of the first assertion in the text; "" if it has none."""
    match = _LINE.search(text)
    if match is None:
        return ""
    file = match["file"].rpartition("/")[2]
    kernel = re.split(r"[<(]", match["kernel"])[0].split()[-1][:80]
    return (
        f"Assertion `{match['condition']}` failed in the kernel {kernel} ({file}:{match['line']})"
    )
