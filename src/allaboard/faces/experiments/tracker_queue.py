"""Writes what waits for one tracker. One that fails is tried again; one that hangs is not."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable

from allaboard.faces.experiments.tracker import MissingTrackerError, Record, Tracker
from allaboard.faces.sidecar.bounded_call import call_in_thread
from allaboard.faces.sidecar.problem_notes import ProblemNotes
from allaboard.facts import Snapshot
from allaboard.formats.redaction import redact_text, secrets_of
from allaboard.report.plain_text import clean

CALL_TIMEOUT_S = 90.0
"""Seconds after which a tracker counts as hanging. The first call of some asks a server, or makes a
database."""
MAX_WAITING = 2000
"""Records that wait for a tracker; the oldest ones are dropped."""
FIRST_RETRY_S, LAST_RETRY_S = 5.0, 300.0
"""Seconds until a tracker that failed is tried again: at first, and at most. Each failure doubles them."""
MAX_REASON_LENGTH = 200
"""Characters of what a tracker's package says."""


class TrackerQueue:
    """The records that wait for one tracker. ``now`` is a clock in seconds."""

    def __init__(
        self,
        tracker: Tracker,
        notes: ProblemNotes,
        now: Callable[[], float],
        call_timeout_s: float = CALL_TIMEOUT_S,
    ) -> None:
        self._tracker, self._notes, self._now = tracker, notes, now
        self._call_timeout_s = call_timeout_s
        self._records: deque[Record] = deque(maxlen=MAX_WAITING)
        self._place = ""
        self._has_said_place = False
        self._is_given_up = False
        self._has_failed = False
        self._try_at = 0.0
        self._retry_s = FIRST_RETRY_S

    @property
    def is_optional(self) -> bool:
        """True if the tracker is one of several."""
        return self._tracker.is_optional

    @property
    def is_unused(self) -> bool:
        """True if it has not been tried: the script was not seen to use it."""
        return not self._place and not self._has_failed

    def add(self, record: Record) -> None:
        """Let a record wait."""
        if not self._is_given_up:
            self._records.append(record)

    async def write(self, snapshot: Snapshot, is_last: bool = False) -> None:
        """Write what waits, unless the place is not known yet or the tracker has just failed. The last time,
        close the tracker."""
        if self._is_given_up or (self._now() < self._try_at and not is_last):
            return
        records = tuple(self._records)
        self._records.clear()
        failure = await self._write_to_tracker(records, snapshot, is_last)
        if failure or not self._place:
            self._records = deque((*records, *self._records), maxlen=MAX_WAITING)
        subject = self._tracker.subject
        if failure:
            self._note_failure(f"{subject} are not written: {failure}; the job goes on")
        elif self._place:
            self._retry_s = FIRST_RETRY_S
            self._notes.resolve(subject, f"{subject} are written again")
            if not self._has_said_place:
                self._has_said_place = True
                self._notes.write(f"{subject}: {self._place}")
        elif is_last and not self._tracker.is_optional:
            self._notes.write(f"{subject} were not written: {self._tracker.why_no_place()}")

    def _note_failure(self, text: str) -> None:
        self._has_failed = True
        if self._is_given_up:
            self._records.clear()
            self._notes.write(text)
            return
        self._try_at = self._now() + self._retry_s
        self._retry_s = min(2 * self._retry_s, LAST_RETRY_S)
        self._notes.report(self._tracker.subject, text)

    async def _write_to_tracker(
        self, records: tuple[Record, ...], snapshot: Snapshot, is_last: bool
    ) -> str:
        """Return why the tracker did not take them, or ""."""

        def write() -> None:
            self._place = self._place or self._tracker.find_place(snapshot)
            if self._place:
                self._tracker.write(records)
            if self._place and is_last:
                self._tracker.close(snapshot)

        try:
            await call_in_thread(write, self._call_timeout_s)
        except TimeoutError:
            self._is_given_up = True  # its thread is still inside
            return f"no answer within {self._call_timeout_s:g} s"
        except MissingTrackerError as error:
            self._is_given_up = True
            return str(error)
        except OSError as error:
            return (error.strerror or type(error).__name__).lower()
        except Exception as error:
            return short_reason(error)
        return ""


def short_reason(error: Exception) -> str:
    """Return what a package says, as a clause without secrets: it may quote a URL with a password."""
    lines = redact_text(f"{type(error).__name__}: {error}", secrets_of(os.environ))
    reason = " ".join(clean(lines).split())
    return reason if len(reason) <= MAX_REASON_LENGTH else f"{reason[:MAX_REASON_LENGTH]}…"
