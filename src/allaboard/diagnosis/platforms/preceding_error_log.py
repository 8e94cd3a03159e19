"""What a log reports shortly before its end, as a reason for an end that says nothing of one itself."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.analysis.failures.bare_exceptions import advice_of_line
from allaboard.analysis.log_ends.named_tasks import named_members
from allaboard.analysis.log_ends.preceding_errors import (
    PrecedingError,
    final_report,
    preceding_errors,
)
from allaboard.analysis.log_ends.telling_line import with_telling_part
from allaboard.analysis.log_messages import speaker_rank, strip_rank_label
from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.end_advice import record_advice
from allaboard.facts import Exhibit, Heard, LoggedReason, Severity, Speaker, Testimony
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD
from allaboard.formats.dumps.thread_dumps.stack_frames import without_source_lines

_RULE = "LOG012"
"""The rule of ends that no other one explains."""
_STACK_HEAD = "(most recent call first)"
"""In the head of a stack of a process that may still run."""
MAX_REASONS = 40
"""Lines of one log that are kept."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    written = exhibit.text.split("\n")
    lines = without_source_lines(written)
    unlabelled = [*map(strip_rank_label, lines)]
    errors = preceding_errors(unlabelled)
    reasons = tuple(
        LoggedReason(
            says=with_telling_part(error.message),
            speaker=_speaker(error, lines, exhibit),
            fix=advice_of_line(error.message),
            about=named_members(error.message),
            is_consequence=error.is_consequence,
            is_stated=error.is_stated,
        )
        for error in errors[-MAX_REASONS:]
    )
    if not reasons:
        return None
    if lines != written or TRACEBACK_HEAD in exhibit.text or _STACK_HEAD in exhibit.text:
        return Testimony(reasons=reasons)  # of a traceback it is known whether it ended the process
    final = None if exhibit.trained_after else final_report(unlabelled, errors)
    heard = () if final is None else (_heard(final, lines, exhibit),)
    return Testimony(reasons=reasons, heard=heard)


def _heard(error: PrecedingError, lines: Sequence[str], exhibit: Exhibit) -> Heard:
    """Return the error with which the log ends as a message, which counts if nothing else is found."""
    return Heard(
        rule=_RULE,
        says=f"the log ends with: {error.message[:200]}",
        speakers=(_speaker(error, lines, exhibit),),
        fix=record_advice(error.message, exhibit.host)
        or advice_of_line(error.message, _lines_around(lines, error.number)),
        about=named_members(error.message),
        severity=Severity.WARNING,
    )


def _lines_around(lines: Sequence[str], number: int) -> list[str]:
    """Return the lines next to an error which may say what is to be done about it."""
    around = [*lines[number + 1 : number + 4], *lines[max(0, number - 2) : number]]
    return [line.strip() for line in around]


def _speaker(error: PrecedingError, lines: Sequence[str], exhibit: Exhibit) -> Speaker:
    line = lines[error.number]
    return Speaker(
        speaker_rank(line, exhibit.rank), line.strip()[:300], exhibit.place_of_line(error.number)
    )


READER = LogReader(read=read_log)
