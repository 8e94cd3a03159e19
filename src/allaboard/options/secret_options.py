"""Options whose values are secrets or may hold one: they are recorded and repeated without them."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.formats.secret_names import REDACTED, SECRET_FLAGS


def without_secret_values(arguments: Iterable[str]) -> tuple[str, ...]:
    """Return the arguments with the values of these options replaced, however they were typed."""
    safe: list[str] = []
    is_value = False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if is_value:
            safe.append(REDACTED)
        elif name in SECRET_FLAGS and equals:
            safe.append(f"{name}={REDACTED}")
        else:
            safe.append(argument)
        is_value = not is_value and argument in SECRET_FLAGS
    return tuple(safe)
