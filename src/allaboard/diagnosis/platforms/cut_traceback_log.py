"""A log that breaks off in the middle of a traceback, or shows it without the head that Python prints."""

from __future__ import annotations

import re
from collections.abc import Sequence

from allaboard.analysis.failures.bare_exceptions import advice_of_line
from allaboard.analysis.failures.launcher_errors import is_launcher_file
from allaboard.analysis.log_ends.preceding_errors import preceding_errors
from allaboard.analysis.log_messages import speaker_rank
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Heard, Severity, Speaker, Testimony
from allaboard.formats.dumps.cut_tracebacks import (
    BREAKS_OFF,
    BegunTraceback,
    CutTraceback,
    begun_traceback,
    cut_traceback,
)

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
    heard = Heard(
        rule=_RULE,
        says=_sentence(found),
        speakers=(
            Speaker(
                speaker_rank(lines[found.line], exhibit.rank),
                found.message or f"its last frame here: {found.frame}",
                exhibit.place_of_line(found.line),
            ),
        ),
        fix=_advice(found, exhibit.name),
        proves_not="which exception it was" if not found.message else "",
    )
    return Testimony(heard=(heard,))


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
