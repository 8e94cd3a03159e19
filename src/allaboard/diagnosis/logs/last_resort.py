"""Ends that no rule explains, as messages that quote them: an exception about a lost peer that nobody names,
or one whose rule has left it to another rule that says nothing.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from allaboard.analysis.failures.failure_causality import has_failed
from allaboard.analysis.failures.library_errors import (
    A_PROCESS,
    LibraryFailure,
    explain_library_error,
)
from allaboard.analysis.failures.lost_peer import has_lost_peer, states_lost_peer
from allaboard.analysis.log_ends.advice_by_words import advice_by_words
from allaboard.analysis.log_ends.named_tasks import named_task
from allaboard.analysis.log_ends.post_traceback_output import OTHER_THREAD_DOUBT, WENT_ON_DOUBT
from allaboard.analysis.log_ends.telling_line import telling_part, with_telling_part
from allaboard.diagnosis.logs.run_readers import LogRecord
from allaboard.diagnosis.logs.task_identification import task_from_name
from allaboard.diagnosis.readers.fatal_log import STORE_GONE, UNEXPLAINED_END
from allaboard.facts import Heard, Member, Place, Raised, Severity, Speaker, Who

_OWN_ENDS = ("a process was ended by", "a process aborted itself")
"""Begin the sentences on how a process itself ended, not on whom it lost."""
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
        and not (_may_follow_work(h) and h.speakers[0].place.file in record.finished_files)
    ]
    doubts = {(g.rank, g.raised): g.doubt for g in record.glimpses if g.raised is not None}
    # Native code says at which address nobody answered; the exception above it does not.
    explained_files = {s.place.file for h in quoted if h.awaits for s in h.speakers}
    told_files: set[str] = set()
    losses: dict[str, Heard] = {}
    for member in members:
        raised = member.raised
        if raised is None or not has_failed(member):
            continue
        if doubts.get((member.who.rank, raised), "").startswith(_CAUGHT):
            continue
        location = _place(origins.get(member.worker, ()))
        if location.file in explained_files:
            continue
        told_files.add(location.file)
        exception_end = _exception_end(member, raised, location)
        if has_lost_peer(member):
            losses[f"{location.file}:{member.worker}"] = exception_end
        else:
            yield exception_end
    own_ends = [h for h in quoted if _is_before_losses(h, losses.values())]
    if own_ends:
        # Whoever was ended, or ended itself, is the one that the others lost.
        yield from map(_named_after_file, own_ends)
        return
    yield from losses.values()
    # The last words of one log are one fact, however many readers have heard them.
    for message in sorted(quoted, key=lambda h: h.severity is not Severity.ERROR):
        files = {s.place.file for s in message.speakers}
        if files.isdisjoint(told_files):
            told_files |= files
            yield message


def _may_follow_work(heard: Heard) -> bool:
    """Return True if the words may also be the last of a process that has done its work before others."""
    return heard.says == STORE_GONE or heard.severity is Severity.WARNING


def _exception_end(member: Member, raised: Raised, raised_at: Place) -> Heard:
    """Return the exception with which a member ended, as a message."""
    line = " ".join(f"{raised.type}: {raised.message}".split())[:300]
    words = f"{raised.type}: {with_telling_part(raised.message)}"
    failure = explain_library_error(raised)
    about = _about(raised, failure)
    if failure is not None and not failure.is_generic:
        says = failure.summary(A_PROCESS)
    elif has_lost_peer(member) and (about or states_lost_peer(raised)):
        lost = about[0].name if about else "a member that the message does not name"
        says = f"a process lost {lost}: {words}"
    else:
        says = f"a process ended with an exception: {words}"
    return Heard(
        rule=UNEXPLAINED_END,
        says=says,
        speakers=(Speaker(member.who.rank, line, raised_at),),
        fix=failure.fix
        if failure is not None
        else _first_step(f"{telling_part(raised.message)} {line}"),
        about=about,
        proves_not="which member failed first: its own log is not among these",
    )


def _first_step(line: str) -> str:
    """Return what to look at by the words of the exception, and then all logs."""
    first = advice_by_words(line)
    return f"{first}; then {COLLECT_LOGS}" if first else COLLECT_LOGS


def _is_before_losses(heard: Heard, losses: Collection[Heard]) -> bool:
    """Return True if the message tells how a process itself ended, and each loss is of another file, or
    comes after it in the same one."""
    ended_at = heard.speakers[0].place
    loss_places = [h.speakers[0].place for h in losses]
    return (
        bool(losses)
        and heard.says.startswith(_OWN_ENDS)
        and all(p.file != ended_at.file or ended_at.line < p.line for p in loss_places)
    )


def _named_after_file(heard: Heard) -> Heard:
    """Return the message about the task after which its file is called, if the name tells one."""
    job, _, index = task_from_name(heard.speakers[0].place.file).partition(" ")
    if not index:
        return heard
    return msgspec.structs.replace(
        heard,
        says=heard.says.replace("a process", f"{job} {index}", 1),
        about=(Who(job=job, index=int(index)),),
    )


def _about(raised: Raised, failure: LibraryFailure | None) -> tuple[Who, ...]:
    """Return the members that the exception names: by a known wording, else by their tasks."""
    named = failure.about if failure is not None else ()
    return named or named_task(raised.message)


def _place(origins: Sequence[str]) -> Place:
    file, _, line = (origins[0] if origins else "").rpartition(":")
    return Place(file=file, line=int(line) if line.isdigit() else 0)
