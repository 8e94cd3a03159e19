"""Advice on an end that was read in a log: commands to type, where the line that reports it is all there is.
Pure."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from allaboard.analysis.failures.failure_causality import CRASH_SIGNALS, USER_SIGNALS
from allaboard.analysis.failures.library_errors import explain_library_error, package_of
from allaboard.analysis.failures.signal_advice import (
    crash_advice,
    crash_place,
    signal_advice,
    windows_status,
)
from allaboard.analysis.log_ends.advice_by_words import advice_by_words
from allaboard.analysis.log_ends.start_advice import start_advice
from allaboard.facts import Claim, Member, Raised
from allaboard.facts.signal_name import SHELL_SIGNAL_OFFSET

_TOLD_BY_NUMBER = (signal.SIGBUS, signal.SIGILL)
"""Signals whose number alone tells more than where the process was."""


def _advice_on_library(raised: Raised) -> str:
    """Return what to do about what a library raised below lines that are not shown; "" if none is known."""
    library = package_of(raised)
    if not library:
        return ""
    return (
        f"get the frames above from the whole log: which line of the program called {library}? pip show "
        f"{library}   # is it the version that the program was written for, on every host?"
    )


def next_step(claim: Claim, member: Member | None, places: Sequence[str]) -> str:
    """Return the advice of a claim about ``member``, which was read at these ``places``."""
    if not places or member is None:
        return f"read {places[0]}" if places else claim.fix
    if member.raised is not None:
        if claim.fix.startswith((f"read {member.log}:", f"see in {member.log} ")):  # only a log
            failure = explain_library_error(member.raised)
            # This log has been read: of a failure that it does not explain, the others may tell more.
            if failure is None and not member.raised.frames:
                return (
                    f"get the traceback above {places[0]} from the whole log: it names the line of the code; "
                    "compare the other ranks' exceptions: the first to fail says most"
                )
            message = member.raised.message
            first = failure.fix if failure else start_advice(message) or advice_by_words(message)
            first = first or _advice_on_library(member.raised)
            return (
                f"{first}; the whole traceback is in {places[0]}" if first else f"read {places[0]}"
            )
        # Live it names the log; without a line of the user's there is none to be mended.
        advice = claim.fix.partition("; the whole traceback")[0]
        return f"{advice}; the whole traceback is in {places[0]}"
    end = member.exit
    if end is not None and (end.oom or end.signal in USER_SIGNALS):
        return claim.fix
    if end is not None and end.signal == signal.SIGKILL and " exited with code " in end.last_line:
        return (
            f"docker inspect -f '{{{{.State.OOMKilled}}}}' $(docker ps -aqf name={member.who.host})"
        )
    if end is not None and end.signal == signal.SIGKILL:
        location = f"on {member.who.host}: " if member.who.host else "on its host: "
        return f"{location}dmesg -T | grep -iE 'killed process|oom'; then ask the batch system who ended it"
    if end is not None and (status := windows_status(end.code)) is not None:
        return status.fix
    if end is not None and end.signal in CRASH_SIGNALS and (place := crash_place(end.last_line)):
        return crash_advice(place)
    if end is not None and end.signal in _TOLD_BY_NUMBER:
        return signal_advice(end.signal)
    if end is not None and end.signal in CRASH_SIGNALS:
        return (
            f"read what it wrote before {places[0]}; PYTHONFAULTHANDLER=1 shows the line that it was at, "
            "ulimit -c unlimited leaves a core"
        )
    by_shell = (end.code or 0) - SHELL_SIGNAL_OFFSET if end is not None else 0
    if by_shell in {int(number) for number in signal.Signals}:
        return f"{signal_advice(by_shell)}; the code is in {places[0]}"
    return (
        f"read {places[0]}, and what this process wrote before it ended, in its own log or above: the error "
        "there says why"
    )
