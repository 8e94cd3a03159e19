"""Ends that no rule explains, as messages that quote them: an exception about a lost peer that nobody names.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from allaboard.analysis.failures.failure_causality import has_failed
from allaboard.analysis.failures.library_errors import A_PROCESS, explain_library_error
from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.analysis.failures.post_traceback_output import (
    LOGGED_DOUBT,
    OTHER_THREAD_DOUBT,
    WENT_ON_DOUBT,
)
from allaboard.diagnosis.logs.run_readers import LogRecord
from allaboard.diagnosis.readers.fatal_log import UNEXPLAINED_END
from allaboard.facts import Heard, Member, Place, Speaker

COLLECT_LOGS = (
    "collect the logs of all members: allaboard diagnose LOG...   # the first to fail says most"
)
"""What to do next if one log is all there is."""
_CAUGHT = (WENT_ON_DOUBT, LOGGED_DOUBT, OTHER_THREAD_DOUBT)
"""Begin the doubts about exceptions that ended nothing."""


def unexplained_ends(
    members: Iterable[Member], origins: Mapping[int, Sequence[str]], record: LogRecord
) -> Iterator[Heard]:
    """Return how members ended that only lost a peer, and the last words of the other files.

    ``origins`` are the places where each member was seen, by its number.
    """
    quoted = [h for h in record.heard if h.rule == UNEXPLAINED_END]
    doubts = {(g.rank, g.raised): g.doubt for g in record.glimpses if g.raised is not None}
    # Native code says at which address nobody answered; the exception above it does not.
    explained_files = {s.place.file for h in quoted if h.awaits for s in h.speakers}
    member_files: set[str] = set()
    for member in members:
        raised = member.raised
        if raised is None or not has_failed(member) or not has_lost_peer(member):
            continue
        if doubts.get((member.who.rank, raised), "").startswith(_CAUGHT):
            continue
        place = _place(origins.get(member.worker, ()))
        if place.file in explained_files:
            continue
        member_files.add(place.file)
        line = f"{raised.type}: {raised.message}"[:300]
        failure = explain_library_error(raised)
        says = (
            failure.summary(A_PROCESS)
            if failure is not None and not failure.is_generic
            else f"a process lost a member that the message does not name: {line[:160]}"
        )
        yield Heard(
            rule=UNEXPLAINED_END,
            says=says,
            speakers=(Speaker(member.who.rank, line, place),),
            fix=failure.fix if failure is not None else COLLECT_LOGS,
            about=failure.about if failure is not None else (),
            proves_not="which member failed first: its own log is not among these",
        )
    yield from (h for h in quoted if not any(s.place.file in member_files for s in h.speakers))


def _place(origins: Sequence[str]) -> Place:
    file, _, line = (origins[0] if origins else "").rpartition(":")
    return Place(file=file, line=int(line) if line.isdigit() else 0)
