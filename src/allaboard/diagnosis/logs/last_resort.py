"""Ends that no rule explains, as messages that quote them: an exception about a lost peer that nobody names,
or one whose rule has left it to another rule that says nothing.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from allaboard.analysis.failures.failure_causality import has_failed
from allaboard.analysis.failures.library_errors import A_PROCESS, explain_library_error
from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.analysis.log_ends.post_traceback_output import (
    OTHER_THREAD_DOUBT,
    WENT_ON_DOUBT,
)
from allaboard.diagnosis.logs.run_readers import LogRecord
from allaboard.diagnosis.readers.fatal_log import STORE_GONE, UNEXPLAINED_END
from allaboard.facts import Heard, Member, Place, Severity, Speaker

COLLECT_LOGS = (
    "collect the logs of all members: allaboard diagnose LOG...   # the first to fail says most"
)
"""What to do next if one log is all there is."""
_CAUGHT = (WENT_ON_DOUBT, OTHER_THREAD_DOUBT)
"""Begin the doubts about exceptions that ended nothing. One that a logger wrote may have ended its process if
nothing follows it."""


def unexplained_ends(
    members: Iterable[Member], origins: Mapping[int, Sequence[str]], record: LogRecord
) -> Iterator[Heard]:
    """Return the exceptions with which members ended, and the last words of the other files.

    They count only where nothing else is found: whoever reads them asks `without_last_resort`.

    ``origins`` are the places where each member was seen, by its number.
    """
    quoted = [
        h
        for h in record.heard
        if h.rule == UNEXPLAINED_END
        and not (h.says == STORE_GONE and h.speakers[0].place.file in record.finished_files)
    ]
    doubts = {(g.rank, g.raised): g.doubt for g in record.glimpses if g.raised is not None}
    # Native code says at which address nobody answered; the exception above it does not.
    explained_files = {s.place.file for h in quoted if h.awaits for s in h.speakers}
    told_files: set[str] = set()
    for member in members:
        raised = member.raised
        if raised is None or not has_failed(member):
            continue
        if doubts.get((member.who.rank, raised), "").startswith(_CAUGHT):
            continue
        place = _place(origins.get(member.worker, ()))
        if place.file in explained_files:
            continue
        told_files.add(place.file)
        line = f"{raised.type}: {raised.message}"[:300]
        failure = explain_library_error(raised)
        if failure is not None and not failure.is_generic:
            says = failure.summary(A_PROCESS)
        elif has_lost_peer(member):
            says = f"a process lost a member that the message does not name: {line[:160]}"
        else:
            says = f"a process ended with an exception: {line[:160]}"
        yield Heard(
            rule=UNEXPLAINED_END,
            says=says,
            speakers=(Speaker(member.who.rank, line, place),),
            fix=failure.fix if failure is not None else COLLECT_LOGS,
            about=failure.about if failure is not None else (),
            proves_not="which member failed first: its own log is not among these",
        )
    # The last words of one log are one fact, however many readers have heard them.
    for message in sorted(quoted, key=lambda h: h.severity is not Severity.ERROR):
        files = {s.place.file for s in message.speakers}
        if files.isdisjoint(told_files):
            told_files |= files
            yield message


def _place(origins: Sequence[str]) -> Place:
    file, _, line = (origins[0] if origins else "").rpartition(":")
    return Place(file=file, line=int(line) if line.isdigit() else 0)
