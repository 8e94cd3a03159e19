"""A finding as a piece of Markdown that a tracker shows. Pure."""

from __future__ import annotations

from typing import NamedTuple

from allaboard.faces.experiments.scalar_table import unix_seconds
from allaboard.facts import Finding
from allaboard.report.finding_text import finding_lines, finding_title


class FindingNote(NamedTuple):
    """A finding, or its resolution, for people."""

    step: int
    """Steps of the rank that was furthest ahead."""
    unix_s: float
    """When it was found, or resolved (s since 1970)."""
    title: str
    """One line: rule, name and ranks."""
    text: str
    """Markdown."""


def note_finding(finding: Finding, step: int) -> FindingNote:
    """Return the note. The lines are those of a terminal, as a block of code: what comes from other processes
    is shown as it is, and is no markup."""
    title = finding_title(finding)
    lines = [f"    {line}" for line in finding_lines(finding, paste=True)]
    found_at = unix_seconds(finding.over or finding.at)
    return FindingNote(step, found_at, title, "\n".join([f"**{title}**", "", *lines]))
