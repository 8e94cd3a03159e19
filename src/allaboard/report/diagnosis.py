"""A diagnosis as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.facts import Diagnosis
from allaboard.report.finding_text import finding_lines
from allaboard.report.json_schema import json_schema_of
from allaboard.report.json_text import indented_json
from allaboard.report.plain_text import DEFAULT_WIDTH, clean, wrap_words
from allaboard.report.stack_text import crowd_lines, tree_lines

MAX_SHOWN_MISSING = 12
"""Lines about what is missing, or could not be read, before the rest is counted."""


def as_text(
    diagnosis: Diagnosis, colour: bool = False, verbose: bool = False, width: int = DEFAULT_WIDTH
) -> str:
    """Return what happened, where each rank is, the findings, and what is missing, in lines of at most
    ``width`` columns.

    ``verbose`` adds whole stacks and all evidence.
    """
    return "".join(f"{line}\n" for line in _lines(diagnosis, colour, verbose, width))


def _lines(diagnosis: Diagnosis, colour: bool, verbose: bool, width: int) -> Iterator[str]:
    for line in diagnosis.told:
        yield from wrap_words(clean(line), width, indent="    ")
    show_places = diagnosis.crowds and (
        verbose or diagnosis.beside or diagnosis.crowds[0].count > 1
    )
    if len(diagnosis.crowds) > 1 or show_places:
        yield "places (> is not where the others wait):"
        yield from (f"  {line}" for line in crowd_lines(diagnosis.crowds))
    if diagnosis.beside:
        yield "no ranks of the job:"
        for line in diagnosis.beside:
            yield from wrap_words(clean(line), width, "    ", "      ")
    if verbose and diagnosis.tree:
        yield "stacks, outermost call first:"
        yield from (f"  {line}" for line in tree_lines(diagnosis.tree))
    for finding in diagnosis.findings:
        yield from finding_lines(finding, colour, verbose, width=width)
    if diagnosis.conclusion:
        yield from wrap_words(clean(diagnosis.conclusion), width, indent="    ")
    yield from _list_section("missing:", diagnosis.missing, verbose, width)
    yield from _list_section("not read:", diagnosis.notes, verbose, width)


def _list_section(heading: str, lines: tuple[str, ...], verbose: bool, width: int) -> Iterator[str]:
    if not lines:
        return
    yield heading
    shown = lines if verbose else lines[:MAX_SHOWN_MISSING]
    for line in shown:
        yield from wrap_words(clean(line), width, "  ", "    ")
    if len(shown) < len(lines):
        yield f"  and {len(lines) - len(shown)} more (--verbose)"


def as_json(diagnosis: Diagnosis) -> str:
    """Return the whole diagnosis as indented JSON."""
    return indented_json(diagnosis)


def diagnosis_schema() -> dict[str, object]:
    """Return the published JSON Schema of a diagnosis, made from its types."""
    return json_schema_of(Diagnosis)
