"""Fields of a spec, picked from variables."""

from __future__ import annotations

from collections.abc import Mapping

from allaboard.facts import Value


def pick_fields(
    variables: Mapping[str, Value], table: Mapping[str, tuple[str, ...]]
) -> dict[str, Value]:
    """Return for every field of ``table`` the first of its variables that is set and not blank."""
    values: dict[str, Value] = {}
    for field, names in table.items():
        for name in names:
            value = variables.get(name)
            if value is not None and value.text.strip():
                values[field] = value
                break
    return values
