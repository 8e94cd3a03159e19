"""Prints notes and findings in the terminal, and writes the same to the journal with their time."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Protocol

import msgspec

from allaboard.agent.background_check import MAX_SHOWN_NOTES
from allaboard.agent.journal import Journal
from allaboard.agent.output.terminal import LineSink
from allaboard.analysis.stacks.stack_crowds import group_member_stacks
from allaboard.analysis.stacks.stack_tree import merge_stacks
from allaboard.clock import SystemClock
from allaboard.facts import Finding, JobView, Stage
from allaboard.formats.secret_hints import redact
from allaboard.report.clock_time import clock_time, note_line
from allaboard.report.finding_text import finding_lines
from allaboard.report.plain_text import allows_colours, clean, output_width, wrap_words
from allaboard.report.stack_text import all_stacks_lines

STDERR = 2
"""File descriptor of the lines that allaboard itself writes."""


class Audience(Protocol):
    """The part of the feed that hears what people read."""

    def publish_note(self, utc_time: str, text: str) -> None:
        """Publish a note."""

    def publish_finding(self, finding: Finding) -> None:
        """Publish a finding."""


class Announcer:
    """The one place through which allaboard speaks to people during a run."""

    def __init__(
        self, journal: Journal, terminal: LineSink, verbose: bool, script: str, quiet: bool = False
    ) -> None:
        self.clock = SystemClock()
        self.journal = journal
        self.terminal = terminal
        self.notes: list[str] = []
        """All notes of this run in order, for the report."""
        self.script_findings: tuple[Finding, ...] = ()
        """Findings from the text of the script and from the environment."""
        self.audience: Audience | None = None
        """Readers of the feed, besides the terminal and the journal; None for none."""
        self._verbose, self._quiet = verbose, quiet
        self._script = script
        self._colour = terminal.is_tty and allows_colours()

    def write_line(self, text: str, to_terminal: bool = True) -> None:
        """Write one note to the journal and, with ``to_terminal``, print it.

        It may quote another host, so it cannot drive a terminal and has one line, wherever it is read; and it
        has no secret of an argument or a message that it quotes.
        """
        text = clean(redact(text))
        self.notes.append(text)
        utc_time = self.clock.utc(self.clock.monotonic())
        self.journal.write_event(utc_time, text)
        if self.audience is not None:
            self.audience.publish_note(utc_time, text)
        if to_terminal and not self._quiet:
            self._print_note(text, utc_time)

    def print_line(self, text: str) -> None:
        """Print one note; the journal has it in another form."""
        self._print_note(clean(redact(text)), self.clock.utc(self.clock.monotonic()))

    def _print_note(self, text: str, utc_time: str) -> None:
        """Print a note: in one line where a program may read it, between words broken on a terminal."""
        line = note_line(text, utc_time)
        is_wrapped = self.terminal.is_tty
        lines = wrap_words(line, output_width(STDERR), indent="    ") if is_wrapped else [line]
        for part in lines:
            self.terminal.write_line(part)

    def print_after_end(self, text: str) -> None:
        """Print one note when the journal is complete and the terminal's own thread has ended."""
        if not self._quiet:
            line = note_line(clean(redact(text)), self.clock.utc(self.clock.monotonic()))
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

    def announce_finding(
        self, finding: Finding, view: JobView | None = None, to_terminal: bool = True
    ) -> None:
        """Write a finding to the journal and, with ``to_terminal``, print it.

        With ``--verbose`` and a ``view``, the stacks of all workers follow.
        """
        finding = redact(finding)
        self._record_finding(finding)
        if not to_terminal:
            return
        self.print_finding(finding, self._verbose)
        if self._verbose and view is not None and finding.stage is Stage.RUNTIME:
            for line in all_stacks_lines(merge_stacks(group_member_stacks(view.members))):
                self.terminal.write_line(line)

    def _record_finding(self, finding: Finding) -> None:
        """Write a finding to the journal and the feed."""
        self.journal.write_finding(finding)
        if self.audience is not None:
            self.audience.publish_finding(finding)

    def print_finding(self, finding: Finding, verbose: bool = False) -> None:
        """Print a finding with the time of day at which it was made."""
        made_at = clock_time(finding.over or finding.at)
        for line in finding_lines(
            finding, self._colour, verbose, width=output_width(STDERR), clock_time=made_at
        ):
            self.terminal.write_line(line)

    def announce_script_findings(self, now: float, findings: Iterable[Finding]) -> None:
        """Announce what the text of the script or the environment gives reason to expect; ``now`` in
        seconds."""
        stamped = [redact(msgspec.structs.replace(f, at=self.clock.utc(now))) for f in findings]
        self.script_findings += tuple(stamped)
        for finding in stamped[:MAX_SHOWN_NOTES]:
            self.announce_finding(finding)
        for finding in stamped[MAX_SHOWN_NOTES:]:
            self._record_finding(finding)
        if len(stamped) > MAX_SHOWN_NOTES:
            hidden_count = len(stamped) - MAX_SHOWN_NOTES
            text = f"{hidden_count} more notes on the script: allaboard check {self._script}"
            self.write_line(text.rstrip())
