"""Shows how the job is doing while it runs: a line at the bottom of a terminal; elsewhere a line of text
where something changes, and one a minute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from allaboard.agent.output.terminal import LineSink
from allaboard.facts import RunPhase, Snapshot
from allaboard.policy.end.end_forecast import forecast_end
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.protocol.job_state_port import JobStatusPort
from allaboard.report.plain_text import output_width
from allaboard.report.status_line import format_elapsed, status_line

STDERR = 2
"""File descriptor of the terminal's bottom line."""
PREFIX = "allaboard: "
"""What the line at the bottom begins with, as all lines of allaboard do."""

HEARTBEAT_S = 60.0
"""Seconds between two lines of text if nothing changes."""
SETTLE_S = 2.0
"""Seconds for which a change must last before it is a line: several members change one after the other."""


NEVER_ENDS = EndPolicy()
"""Policy of a job that may stand still for as long as it likes."""


class SnapshotSource(Protocol):
    """The part of the feed that the display uses."""

    def recent_snapshot(self, now: float, status: JobStatusPort) -> Snapshot | None:
        """Return a snapshot of the last second; None if there is none."""


class ProgressDisplay:
    """What a run shows of its progress.

    ``write_text`` prints a line of text. ``mode`` is "auto", "line" or "off". ``policy`` and ``max_restarts``
    say what is done about a job that stands still.
    """

    def __init__(
        self,
        terminal: LineSink,
        source: SnapshotSource,
        write_text: Callable[[str], None],
        started_at: float,
        mode: str = "auto",
        policy: EndPolicy = NEVER_ENDS,
        max_restarts: int = 0,
    ) -> None:
        self._terminal, self._source, self._write_text = terminal, source, write_text
        self._lines = ProgressLines(started_at)
        self._policy, self._max_restarts = policy, max_restarts
        self._has_status = mode == "auto" and terminal.is_tty
        self._has_lines = mode == "line" or (mode == "auto" and not terminal.is_tty)

    def update(
        self, now: float, status: JobStatusPort, waiting_note: str = "", countdown: str = ""
    ) -> None:
        """Show what is new. ``waiting_note``: what a host that leads says of the roll call, if this one does
        not; a host that does not lead prints no lines of text, since the leading one does.
        ``countdown``: who still runs of a job that is being ended."""
        if countdown:
            # Lines of text about what a job did before it was ended would contradict those of the countdown.
            if self._has_status:
                self._show_status(countdown)
            return
        if not self._has_status and (not self._has_lines or status.leader_decides):
            return
        if status.leader_decides and status.opened_at is None:
            self._show_status(waiting_note)
            return
        snapshot = self._source.recent_snapshot(now, status)
        if snapshot is None:
            return
        end = self._countdown_to_end(now, snapshot, status)
        if self._has_status:
            width = output_width(STDERR) - 1 - len(PREFIX)
            shown = _has_something_to_show(snapshot)
            self._show_status(status_line(snapshot, width, end) if shown else "")
        elif text := self._lines.next_line(now, snapshot, end):
            self._write_text(text)

    def _countdown_to_end(self, now: float, snapshot: Snapshot, status: JobStatusPort) -> str:
        """Return what is done if the job stands still for longer: "restart in 0:12"; "" for nothing."""
        if snapshot.run.phase is not RunPhase.STALLED:
            return ""
        forecast = forecast_end(status.recent_view(now), self._policy)
        if forecast is None:
            return ""
        can_restart = len(snapshot.run.restarts) < self._max_restarts
        action = "restart" if forecast.is_restart and can_restart else "ends"
        return f"{action} in {format_elapsed(max(0.0, forecast.seconds_left))}"

    def _show_status(self, text: str) -> None:
        self._terminal.show_status(PREFIX + text if text else "")


class ProgressLines:
    """Decides which lines of text a run writes. Pure: `now` and the snapshot come in, text comes out."""

    def __init__(self, started_at: float) -> None:
        self._written_at = started_at
        self._written: object = None
        self._changed: object = None
        self._changed_at = started_at

    def next_line(self, now: float, snapshot: Snapshot, countdown: str = "") -> str:
        """Return the line that is due at ``now`` (s), or ""; ``countdown`` as for `status_line`."""
        state = _visible_state(snapshot)
        if state != self._changed:
            self._changed, self._changed_at = state, now
        is_changed = state != self._written and now - self._changed_at >= SETTLE_S
        if self._written is None and not snapshot.run.step:
            # What the roll call is doing, its notes say; the first line comes with the first step.
            is_changed = False
        is_heartbeat = now - self._written_at >= HEARTBEAT_S
        if snapshot.run.phase is RunPhase.ENDED or not (is_changed or is_heartbeat):
            return ""
        self._written, self._written_at = state, now
        return status_line(snapshot, countdown=countdown)


def _has_something_to_show(snapshot: Snapshot) -> bool:
    """Return False for one process that has made no step yet: it may be any program."""
    run = snapshot.run
    if run.phase is RunPhase.ENDED:
        return False
    is_alone = run.world_size == 1 and not run.step
    return (
        not is_alone
        or run.phase is not RunPhase.STARTING
        or any(not f.over for f in snapshot.findings)
    )


def _visible_state(snapshot: Snapshot) -> object:
    """Return what makes a new line: the phase, how many are there, the rounds, and whether steps are made.

    Findings are printed when they are made; they are no change here.
    """
    run = snapshot.run
    return run.phase, run.ready, run.world_size, run.round, run.step > 0
