"""What a log reports shortly before its end, as a reason for an end that says nothing of one itself."""

from __future__ import annotations

from allaboard.analysis.failures.bare_exceptions import advice_of_line
from allaboard.analysis.log_ends.named_tasks import named_task
from allaboard.analysis.log_ends.preceding_errors import preceding_errors
from allaboard.analysis.log_ends.telling_line import with_telling_part
from allaboard.analysis.log_messages import speaker_rank, strip_rank_label
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, LoggedReason, Speaker, Testimony

MAX_REASONS = 40
"""Lines of one log that are kept."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    lines = exhibit.text.split("\n")
    reasons = tuple(
        LoggedReason(
            says=with_telling_part(error.message),
            speaker=Speaker(
                speaker_rank(lines[error.number], exhibit.rank),
                lines[error.number].strip()[:300],
                exhibit.place_of_line(error.number),
            ),
            fix=advice_of_line(error.message),
            about=named_task(error.message),
            is_consequence=error.is_consequence,
            is_stated=error.is_stated,
        )
        for error in preceding_errors([*map(strip_rank_label, lines)])[-MAX_REASONS:]
    )
    return Testimony(reasons=reasons) if reasons else None


READER = LogReader(read=read_log)
