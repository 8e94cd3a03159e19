"""A log that breaks off in the middle of a traceback, or shows it without the head that Python prints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from allaboard.analysis.failures.bare_exceptions import advice_of_line
from allaboard.analysis.failures.launcher_errors import is_launcher_file
from allaboard.analysis.failures.library_errors import A_PROCESS, explain_library_error
from allaboard.analysis.log_ends.preceding_errors import preceding_errors
from allaboard.analysis.log_messages import speaker_rank
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Heard, Raised, Severity, Speaker, Testimony
from allaboard.formats.dumps.cut_tracebacks import (
    BREAKS_OFF,
    BegunTraceback,
    CutTraceback,
    begun_traceback,
    cut_traceback,
)
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD


class KnownError(NamedTuple):
    """An error that a log reports in a line, whose cause is known."""

    number: int
    """Index of the line."""
    message: str
    """The line."""
    says: str
    """The cause, as a sentence."""
    fix: str
    """What to do next."""


_LABEL = re.compile(r"^\[(?:rank|default|worker)?\s?\d{1,7}\]:? ?")
BEGINS_ONLY = "the log breaks off at the beginning of its traceback"
MAX_LINES_ABOVE = 12
"""Lines above such a beginning among which a reported error belongs to it."""
_RULE = "LOG012"
"""The rule of ends that no other one explains."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    if not any(sign in exhibit.text for sign in ('File "', " │ ", "Trace")):
        return None
    lines = [_LABEL.sub("", line) for line in exhibit.text.split("\n")]
    found = cut_traceback(lines)
    if found is None:
        begun = begun_traceback(lines)
        return _testimony_of_head(begun, lines, exhibit) if begun is not None else None
    known_error = _known_error_above(found, lines)
    number = known_error.number if known_error is not None else found.line
    quoted_line = known_error.message if known_error is not None else found.message
    heard = Heard(
        rule=_RULE,
        says=known_error.says if known_error is not None else _sentence(found),
        speakers=(
            Speaker(
                speaker_rank(lines[number], exhibit.rank),
                quoted_line[:300] or f"its last frame here: {found.frame}",
                exhibit.place_of_line(number),
            ),
        ),
        fix=known_error.fix if known_error is not None else _advice(found, exhibit.name),
        proves_not="which exception it was" if not found.message else "",
    )
    return Testimony(heard=(heard,))


def _known_error_above(found: CutTraceback, lines: Sequence[str]) -> KnownError | None:
    """Return the error that was reported right before a traceback without its end, if its cause is known."""
    if found.message or found.cause or found.spawned >= 0:
        return None
    heads = [n for n in range(found.line) if TRACEBACK_HEAD in lines[n]]
    begin = heads[-1] if heads else found.line
    reported = [e.number for e in preceding_errors(lines[:begin])]
    for number in reversed([n for n in reported if begin - n <= MAX_LINES_ABOVE]):
        # The runtime prints what it then raises.
        line = lines[number].strip()
        failure = explain_library_error(Raised(type="RuntimeError", message=line, raised_at=0.0))
        if failure is not None and not failure.is_generic:
            says = f"{failure.summary(A_PROCESS)}; {BREAKS_OFF}{found.innermost}"
            return KnownError(number, line, says, failure.fix)
    return None


def _testimony_of_head(begun: BegunTraceback, lines: Sequence[str], exhibit: Exhibit) -> Testimony:
    """Return that a traceback begins where the log ends, and what was reported just before it."""
    subject = f"spawned process {begun.spawned}" if begun.spawned >= 0 else "a process"
    above = preceding_errors(lines[: begun.line])
    near = [e for e in above if begun.line - e.number <= MAX_LINES_ABOVE and not e.is_consequence]
    reported = near[0].message if near and begun.spawned < 0 else ""
    says = f"{subject} failed{f' after {reported[:200]}' if reported else ''}; {BEGINS_ONLY}"
    number = near[0].number if reported else begun.line
    line = lines[begun.line - 1] if begun.spawned >= 0 and begun.line else lines[number]
    heard = Heard(
        rule=_RULE,
        says=says,
        speakers=(
            Speaker(
                speaker_rank(lines[number], exhibit.rank),
                line.strip()[:300] or "Traceback",
                exhibit.place_of_line(number),
            ),
        ),
        fix=f"{advice_of_line(reported)}; {_end_from(exhibit.name)}"
        if reported
        else _end_from(exhibit.name),
        proves_not="which exception it was",
        severity=Severity.ERROR if reported or begun.spawned >= 0 else Severity.WARNING,
    )
    return Testimony(heard=(heard,))


def _sentence(found: CutTraceback) -> str:
    if found.message:
        return f"the log ends in an error: {found.message[:200]}"
    subject = f"spawned process {found.spawned}" if found.spawned >= 0 else "a process"
    if is_launcher_file(found.frame.file):
        return f"a launcher reports that a process of the job failed; {BREAKS_OFF}{found.frame}"
    if found.cause:
        return f"{subject} failed after {found.cause[:200]}; {BREAKS_OFF}{found.innermost}"
    called = f", called at {found.frame}" if found.frame != found.innermost else ""
    return f"{subject} raised an exception whose name is missing here: {BREAKS_OFF}{found.innermost}{called}"


def _advice(found: CutTraceback, name: str) -> str:
    if found.message:
        advice = advice_of_line(found.message)
        return (
            advice if not advice.startswith("collect ") else f"look at {found.frame}; then {advice}"
        )
    if found.cause:
        return f"{advice_of_line(found.cause)}; and the end of that traceback, from the whole log"
    return _end_from(name)


def _end_from(name: str) -> str:
    return (
        "get the end of that traceback from the whole log: the line below its last frame names the "
        "exception; "
        f"grep -nE -A2 '^(\\[rank[0-9]+\\]: )?[A-Za-z_.]+(Error|Exception)\\b' LOG   # here only {name}"
    )


READER = LogReader(read=read_log)
