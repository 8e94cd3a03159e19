"""Prints notes and findings in the terminal, and writes the same to the journal with their time."""

from __future__ import annotations

import os
from collections.abc import Iterable

import msgspec

from allaboard.agent.background_check import MAX_SHOWN_NOTES
from allaboard.agent.journal import Journal
from allaboard.agent.terminal import LineSink
from allaboard.analysis.stacks.stack_crowds import group_member_stacks
from allaboard.analysis.stacks.stack_tree import merge_stacks
from allaboard.clock import SystemClock
from allaboard.facts import Finding, JobView, Stage
from allaboard.report.finding_text import finding_lines
from allaboard.report.plain_text import output_width
from allaboard.report.stack_text import all_stacks_lines

STDERR = 2
"""File descriptor of the lines that allaboard itself writes."""


class Announcer:
    """The one place through which allaboard speaks to people during a run."""

    def __init__(self, journal: Journal, terminal: LineSink, verbose: bool, script: str) -> None:
        self.clock = SystemClock()
        self.journal = journal
        self.terminal = terminal
        self.notes: list[str] = []
        """All notes of this run in order, for the report."""
        self.script_findings: tuple[Finding, ...] = ()
        """Findings from the text of the script and from the environment."""
        self._verbose = verbose
        self._script = script
        self._colour = terminal.is_tty and "NO_COLOR" not in os.environ

    def write_line(self, text: str, to_terminal: bool = True) -> None:
        """Write one note to the journal and, with ``to_terminal``, print it."""
        self.notes.append(text)
        self.journal.write_event(self.clock.utc(self.clock.monotonic()), text)
        if to_terminal:
            self.terminal.write_line(f"allaboard: {text}")

    def announce_finding(
        self, finding: Finding, view: JobView | None = None, to_terminal: bool = True
    ) -> None:
        """Write a finding to the journal and, with ``to_terminal``, print it.

        With ``--verbose`` and a ``view``, the stacks of all workers follow.
        """
        self.journal.write_finding(finding)
        if not to_terminal:
            return
        width = output_width(STDERR)
        for line in finding_lines(finding, self._colour, self._verbose, width=width):
            self.terminal.write_line(line)
        if self._verbose and view is not None and finding.stage is Stage.RUNTIME:
            for line in all_stacks_lines(merge_stacks(group_member_stacks(view.members))):
                self.terminal.write_line(line)

    def announce_script_findings(self, now: float, findings: Iterable[Finding]) -> None:
        """Announce what the text of the script or the environment gives reason to expect; ``now`` in
        seconds."""
        stamped = [msgspec.structs.replace(f, at=self.clock.utc(now)) for f in findings]
        self.script_findings += tuple(stamped)
        for finding in stamped[:MAX_SHOWN_NOTES]:
            self.announce_finding(finding)
        for finding in stamped[MAX_SHOWN_NOTES:]:
            self.journal.write_finding(finding)
        if len(stamped) > MAX_SHOWN_NOTES:
            hidden_count = len(stamped) - MAX_SHOWN_NOTES
            text = f"{hidden_count} more notes on the script: allaboard check {self._script}"
            self.write_line(text.rstrip())
