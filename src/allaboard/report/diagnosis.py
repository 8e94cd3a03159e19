"""A diagnosis as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.facts import Diagnosis
from allaboard.report.finding_text import finding_lines
from allaboard.report.plain_text import DEFAULT_WIDTH, clean, wrap_words
from allaboard.report.published import published
from allaboard.report.stacks import crowd_lines, tree_lines

MISSING = 12
"""Lines about what is missing, or could not be read, before the rest is counted."""


def as_text(
    found: Diagnosis, colour: bool = False, verbose: bool = False, width: int = DEFAULT_WIDTH
) -> str:
    """What happened, where everybody is, the findings, and what is missing."""
    return "".join(f"{line}\n" for line in _lines(found, colour, verbose, width))


def _lines(found: Diagnosis, colour: bool, verbose: bool, width: int) -> Iterator[str]:
    for line in found.told:
        yield from wrap_words(clean(line), width, indent="    ")
    many = found.crowds and (verbose or found.beside or found.crowds[0].count > 1)
    if len(found.crowds) > 1 or many:
        yield "places (> is not where the others wait):"
        yield from (f"  {line}" for line in crowd_lines(found.crowds))
    if found.beside:
        yield "no ranks of the job:"
        for line in found.beside:
            yield from wrap_words(clean(line), width, "    ", "      ")
    if verbose and found.tree:
        yield "stacks, outermost call first:"
        yield from (f"  {line}" for line in tree_lines(found.tree))
    for finding in found.findings:
        yield from finding_lines(finding, colour, verbose, width=width)
    if found.conclusion:
        yield from wrap_words(clean(found.conclusion), width, indent="    ")
    yield from _some("missing:", found.missing, verbose, width)
    yield from _some("not read:", found.notes, verbose, width)


def _some(head: str, lines: tuple[str, ...], verbose: bool, width: int) -> Iterator[str]:
    if not lines:
        return
    yield head
    shown = lines if verbose else lines[:MISSING]
    for line in shown:
        yield from wrap_words(clean(line), width, "  ", "    ")
    if len(shown) < len(lines):
        yield f"  and {len(lines) - len(shown)} more (--verbose)"


def as_json(found: Diagnosis) -> str:
    """All of it, for programs."""
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"


def schema() -> dict[str, object]:
    """The published JSON Schema of a diagnosis, from its types."""
    return published(Diagnosis)
