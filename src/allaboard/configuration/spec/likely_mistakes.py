"""Claims about mistakes that the values of a configuration make likely."""

from __future__ import annotations

from allaboard.facts import Certainty, Claim, Severity, Value


def likely_mistake(summary: str, values: tuple[Value, ...], fix: str) -> Claim:
    """Return a likely error: these values are its evidence, and it is shown where the first of them
    stands."""
    return Claim(
        summary=summary,
        evidence=tuple(v.evidence for v in values),
        fix=fix,
        severity=Severity.ERROR,
        certainty=Certainty.LIKELY,
        where=values[0].origin.editor_place,
    )
