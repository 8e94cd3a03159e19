"""A process of multiprocessing whose traceback is the last that its program has printed. Pure.

`Process` prints "Process NAME:" and the traceback of what its function raises. Once its parent has waited for
it, nothing else outside the parent's memory tells that it failed.
"""

from __future__ import annotations

import re

from allaboard.formats.redaction import redact_text
from allaboard.late_pattern import compile_late

MAX_ERROR_LENGTH = 120
"""Characters of the exception that are kept."""
_TRACEBACK = compile_late(
    r"^Process (?P<name>[\w.-]{1,80}):\nTraceback \(most recent call last\):\n", re.MULTILINE
)
_PARTS = (" ", "Traceback (most recent", "During handling of", "The above exception was")
"""What rows of a traceback begin with, but for those that name an exception."""
_EXCEPTION = compile_late(
    r"[A-Za-z_][\w.]{0,120}(?:Error|Exception|Interrupt|Exit|Stop|Iteration|Empty|Full)(?::|$)"
)
"""The line of a traceback that names the exception: it begins in the first column."""


def find_printed_failure(text: str) -> str:
    """Return "Process-2: KeyError: 'valid'" if the output ends with the traceback of such a process; "" if it
    does not: whoever goes on printing has taken notice, or did not need the process."""
    matches = list(_TRACEBACK.finditer(text))
    if not matches:
        return ""
    last_match = matches[-1]
    rows = text[last_match.end() :].rstrip().split("\n")
    last_row = rows[-1]
    # Within a traceback, all rows but the headings of its parts and the exceptions are indented.
    others = [r for r in rows[:-1] if r and not r.startswith(_PARTS) and not _EXCEPTION.match(r)]
    if others or not _EXCEPTION.match(last_row):
        return ""
    return f"{last_match['name']}: {redact_text(last_row[:MAX_ERROR_LENGTH])}"
