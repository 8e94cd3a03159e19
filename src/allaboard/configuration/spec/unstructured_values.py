"""Values that should have a structure, and have none because they are no JSON."""

from __future__ import annotations

from allaboard.facts import FormatError, Origin, Problem

EXAMPLE = (
    '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker", "index": 0}}'
)
"""A right TF_CONFIG, proposed if there is nothing that could be corrected."""


def not_json(error: FormatError, text: str, origin: Origin) -> Problem:
    """Return the problem of a text that is no JSON, with what may have been meant."""
    return Problem(
        kind="tf_config.json",
        message=error.reason,
        observed=error.near or text[:24] or "(empty)",
        correction=error.correction or EXAMPLE,
        origin=origin.within(error.line, error.column),
    )
