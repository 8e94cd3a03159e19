"""A diagnosis as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.facts import Diagnosis
from allaboard.report.published import published
from allaboard.report.stacks import crowd_lines, tree_lines
from allaboard.report.text import clean, finding_lines

MISSING = 12
"""Lines about what is missing, or could not be read, before the rest is counted."""


def as_text(found: Diagnosis, colour: bool = False, verbose: bool = False) -> str:
    """What happened, where everybody is, the findings, and what is missing."""
    return "".join(f"{line}\n" for line in _lines(found, colour, verbose))


def _lines(found: Diagnosis, colour: bool, verbose: bool) -> Iterator[str]:
    yield from (clean(line) for line in found.told)
    many = found.crowds and (verbose or found.beside or found.crowds[0].count > 1)
    if len(found.crowds) > 1 or many:
        yield "places (> is not where the others wait):"
        yield from (f"  {line}" for line in crowd_lines(found.crowds))
    if found.beside:
        yield "no ranks of the job:"
        yield from (f"    {clean(line)}" for line in found.beside)
    if verbose and found.tree:
        yield "stacks, outermost call first:"
        yield from (f"  {line}" for line in tree_lines(found.tree))
    for finding in found.findings:
        yield from finding_lines(finding, colour, verbose)
    if found.conclusion:
        yield clean(found.conclusion)
    yield from _some("missing:", found.missing, verbose)
    yield from _some("not read:", found.notes, verbose)


def _some(head: str, lines: tuple[str, ...], verbose: bool) -> Iterator[str]:
    if not lines:
        return
    yield head
    shown = lines if verbose else lines[:MISSING]
    yield from (f"  {clean(line)}" for line in shown)
    if len(shown) < len(lines):
        yield f"  and {len(lines) - len(shown)} more (--verbose)"


def as_json(found: Diagnosis) -> str:
    """All of it, for programs."""
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"


def schema() -> dict[str, object]:
    """The published JSON Schema of a diagnosis, from its types."""
    return published(Diagnosis)
