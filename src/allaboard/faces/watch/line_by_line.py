"""`watch` where there is no screen: a line for every change, and one from time to time."""

from __future__ import annotations

import time
from collections.abc import Callable

from allaboard.faces.watch.run_source import RunSource, SourceChanged
from allaboard.faces.watch.run_summary import headline, title
from allaboard.facts import Finding, Snapshot
from allaboard.feed.messages import FindingMessage, Note, SnapshotMessage
from allaboard.report.finding_text import finding_lines
from allaboard.report.plain_text import clean

HEARTBEAT_S = 10.0
"""Seconds after which a line is printed though nothing has changed."""


async def follow_line_by_line(
    source: RunSource,
    write: Callable[[str], None],
    width: int,
    now: Callable[[], float] = time.monotonic,
) -> Snapshot | None:
    """Print what happens until the run ends; return the last snapshot. Raises FeedError."""
    printer = _Printer(write, width)
    async for message in source.messages():
        if isinstance(message, SourceChanged):
            write(f"watching {clean(message.text)}{'' if message.is_live else ' (not live)'}")
        elif isinstance(message, Note):
            write(f"{message.noted_at} {clean(message.text)}")
        elif isinstance(message, FindingMessage):
            printer.print_finding(message.finding)
        elif isinstance(message, SnapshotMessage):
            printer.print_snapshot(message.snapshot, now())
    return printer.last


class _Printer:
    def __init__(self, write: Callable[[str], None], width: int) -> None:
        self._write, self._width = write, width
        self._printed_at = float("-inf")
        self._phase: tuple[str, str] | None = None
        self._findings: set[str] = set()
        self.last: Snapshot | None = None

    def print_finding(self, finding: Finding) -> None:
        """Print a finding, once in each of its states."""
        key = f"{finding.rule} {finding.summary} {finding.over}"
        if key not in self._findings:
            self._findings.add(key)
            for line in finding_lines(
                finding, width=self._width, clock_time=clean(finding.over or finding.at)
            ):
                self._write(line)

    def print_snapshot(self, snapshot: Snapshot, now: float) -> None:
        """Print the state of the job if it has changed, or nothing was printed for a while."""
        run = snapshot.run
        if self.last is None:
            self._write(title(snapshot))
            for finding in snapshot.findings:
                self.print_finding(finding)
        self.last = snapshot
        phase = str(run.phase), run.outcome
        if phase != self._phase or now - self._printed_at >= HEARTBEAT_S:
            self._phase, self._printed_at = phase, now
            self._write(f"{snapshot.taken_at} {headline(snapshot)}")
