"""Findings as pages show them: numbered, with their place in time and the page of their rule."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec
from markupsafe import Markup

from allaboard.facts import Finding


class NumberedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding as the page shows it."""

    number: int
    """Its number, from 1."""
    finding: Finding
    """The finding."""
    after_s: float | None
    """Seconds from the start of the run to it; None if not known."""
    page: Markup
    """The page of its rule; empty if there is none, or if it stands at another finding."""
    page_at: int
    """Number of that finding; 0 for none."""


def number_findings(
    findings: tuple[Finding, ...], rule_pages: Mapping[str, str], started: str = ""
) -> tuple[NumberedFinding, ...]:
    """Return the findings in the order of the page, each with the page of its rule."""
    if not findings:
        return ()
    # Loaded only now: most pages have no finding, and it takes a quarter of the time of such a page.
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"html": False})
    numbered: list[NumberedFinding] = []
    first_numbers: dict[str, int] = {}
    for number, finding in enumerate(findings, 1):
        first_number = first_numbers.setdefault(finding.rule, number)
        # A page that explains many findings stands once. markdown-it escapes all HTML of the page itself.
        body = _body(rule_pages.get(finding.rule, "")) if first_number == number else ""
        numbered.append(
            NumberedFinding(
                number=number,
                finding=finding,
                after_s=seconds_between(started, finding.at),
                page=Markup(markdown.render(body)),
                page_at=first_number
                if first_number != number and finding.rule in rule_pages
                else 0,
            )
        )
    return tuple(numbered)


def seconds_between(begin: str, end: str) -> float | None:
    """Return the seconds between two ISO 8601 times; None if one is not known."""
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()
    except (ValueError, TypeError):
        return None


def _body(page: str) -> str:
    """Return a rule's page without its title, and with its headings below those of the finding."""
    lines = page.splitlines()
    if lines and lines[0].startswith("# "):
        del lines[0]
    return "\n".join(f"##{line}" if line.startswith("## ") else line for line in lines)
