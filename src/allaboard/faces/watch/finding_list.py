"""The findings: a line each, which unfolds to evidence and fix."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from allaboard.faces.watch.run_summary import active_findings
from allaboard.faces.watch.screen_style import screen_style
from allaboard.facts import Finding, Snapshot
from allaboard.report.finding_text import finding_lines
from allaboard.report.plain_text import clean

STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}
HINT = "  c copies the fix · p shows the page of the rule · Enter folds"
MAX_SHOWN = 100
"""Findings that are listed."""


class FindingList(OptionList):
    """The open findings, errors first, then the resolved ones. The first that matters is unfolded."""

    DEFAULT_CSS = """
    FindingList { height: auto; max-height: 45%; border: none; padding: 0; display: none; }
    FindingList.-filled { display: block; }
    FindingList:focus { border: none; }
    """

    def __init__(self) -> None:
        super().__init__(id="findings", markup=False)
        self._findings: tuple[Finding, ...] = ()
        self._left_out = 0
        self._unfolded: set[str] = set()
        self._has_unfolded = False
        self._drawn: tuple[object, ...] = ()

    def show(self, snapshot: Snapshot) -> None:
        """Show the findings of a snapshot; nothing is redrawn unless they have changed."""
        active = active_findings(snapshot)
        resolved = [f for f in snapshot.findings if f.over is not None]
        self._findings = tuple([*active, *resolved][:MAX_SHOWN])
        self._left_out = snapshot.findings_left_out + len(snapshot.findings) - len(self._findings)
        if active and not self._has_unfolded and active[0].severity != "info":
            self._has_unfolded = True
            self._unfolded.add(_key(active[0]))
        self.redraw()

    def redraw(self) -> None:
        """Draw the list again if it or its width has changed."""
        width = max(20, self.size.width - 2)
        drawn = (self._findings, self._left_out, frozenset(self._unfolded), width)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        highlighted = self.highlighted or 0
        self.set_class(bool(self._findings), "-filled")
        options = [Option(self._text(f, width)) for f in self._findings]
        if self._left_out:
            more = f"... and {self._left_out} more findings, in the journal and the report"
            options.append(Option(more[:width], disabled=True))
        self.set_options(options)
        if self._findings:
            self.highlighted = min(highlighted, len(self._findings) - 1)

    def toggle(self, number: int) -> None:
        """Unfold or fold a finding."""
        if number < len(self._findings):
            self._unfolded ^= {_key(self._findings[number])}
            self.redraw()

    @property
    def selected(self) -> Finding | None:
        """The finding under the cursor; None if there is none."""
        number = self.highlighted or 0
        return self._findings[number] if number < len(self._findings) else None

    def _text(self, finding: Finding, width: int) -> Text:
        is_unfolded = _key(finding) in self._unfolded
        lines: Sequence[str]
        if is_unfolded:
            open_finding = finding_lines(finding, verbose=True, width=width)
            lines = [*open_finding, HINT[:width]]
        else:
            lines = [_folded(finding)[:width]]
        text = Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
        if finding.over is None:
            text.stylize(
                screen_style(STYLES[finding.severity]),
                0,
                min(len(lines[0]), _label_length(finding)),
            )
        else:
            text.stylize("dim")
        if is_unfolded:
            text.stylize("dim", len(text) - len(lines[-1]))
        return text


def _key(finding: Finding) -> str:
    return f"{finding.rule} {finding.who!r}"


def _folded(finding: Finding) -> str:
    state = "resolved " if finding.over is not None else ""
    return f"{state}{finding.severity} {finding.rule} {finding.name}: {clean(finding.summary)}"


def _label_length(finding: Finding) -> int:
    return len(f"{finding.severity} {finding.rule} {finding.name}")
