"""The last line of an exception without its traceback: what is known of its cause all the same. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from allaboard.analysis.failures.known_errors import known_remedy
from allaboard.analysis.failures.library_errors import A_PROCESS, explain_library_error
from allaboard.facts import Raised

_EXCEPTION = re.compile(
    r"(?:^|[\s\"'])(?:[A-Za-z_]\w{0,80}\.){0,12}(?P<type>[A-Z]\w{0,80}(?:Error|Exception)): (?P<message>\S.*)"
)


class BareException(NamedTuple):
    """What an exception means of which only the last line is known."""

    says: str
    """The cause, as a sentence about "a process"."""
    fix: str
    """What to do next."""


def explain_bare_exception(line: str) -> BareException | None:
    """Return the known cause of the exception in this line; None if there is none, or its words are new."""
    match = _EXCEPTION.search(line)
    if match is None:
        return None
    message = match["message"].rstrip(' "')
    raised = Raised(type=match["type"], message=message, raised_at=0.0, where=None, frames=())
    if remedy := known_remedy(raised):
        return BareException(
            f"{A_PROCESS} ended with {raised.type}: {remedy.cause or message[:160]}", remedy.fix
        )
    failure = explain_library_error(raised)
    if failure is None or failure.is_generic:
        return None
    return BareException(failure.summary(A_PROCESS), failure.fix)
