"""Places inside of a structured value, and a value that has no structure because it is no JSON."""

from __future__ import annotations

from allaboard.facts import FormatError, Origin, Problem

EXAMPLE = (
    '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker", "index": 0}}'
)
"""A TF_CONFIG as it should be, for those who have nothing that could be corrected."""


def not_json(error: FormatError, text: str, origin: Origin) -> Problem:
    """A text that is no JSON, with what may have been meant."""
    inside = inner(origin, error.line, error.column, "")
    return Problem(
        kind="tf_config.json",
        said=error.said,
        observed=error.near or text[:24] or "(empty)",
        correction=error.correction or EXAMPLE,
        origin=inside,
    )


def inner(origin: Origin, line: int, column: int, key: str) -> Origin:
    """The origin of a place inside a value that begins at ``origin``."""
    if not origin.file:
        return Origin(variable=origin.variable, key=key, line=line, column=column)
    if not origin.line:
        return Origin(variable=origin.variable, key=key, file=origin.file, line=line, column=column)
    across = origin.column + column - 1 if line == 1 and origin.column else column
    return Origin(
        variable=origin.variable,
        key=key,
        file=origin.file,
        line=origin.line + line - 1,
        column=across if origin.column else 0,
    )
