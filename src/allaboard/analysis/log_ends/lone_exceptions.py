"""What to do about the last line of an exception whose traceback was not pasted along. Pure."""

from __future__ import annotations

import re

from allaboard.analysis.failures.known_errors import known_error_advice
from allaboard.analysis.failures.library_errors import explain_library_error
from allaboard.analysis.failures.stated_remedy import stated_remedy
from allaboard.facts import Raised

_EXCEPTION = re.compile(
    r"(?:^|[\s:])(?:[A-Za-z_]\w{0,60}\.){0,8}(?P<type>[A-Z]\w{0,80}(?:Error|Exception)): (?P<message>.+)"
)
COLLECT = "collect the logs of all members and of the launcher: allaboard diagnose LOG..."
"""What to do next where nothing more is known."""


def advice_of_line(line: str) -> str:
    """Return what to do about the exception in this line, or about what it reports in other words."""
    match = _EXCEPTION.search(line[:1000])
    message = match["message"] if match is not None else line[:1000]
    raised = Raised(type=match["type"] if match is not None else "", message=message, raised_at=0.0)
    failure = explain_library_error(raised) if match is not None else None
    if failure is not None and not failure.is_generic:
        return failure.fix
    if advice := known_error_advice(raised):
        return advice
    if stated := stated_remedy(message):
        return f"do what it says: {stated!r}; if that does not help, {COLLECT}"
    return COLLECT
