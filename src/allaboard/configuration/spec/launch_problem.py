"""The problem of a launch command at one of its values."""

from __future__ import annotations

from allaboard.facts import Problem, Value


def launch_problem(value: Value, *, message: str, correction: str, observed: str = "") -> Problem:
    """Return the problem that a launch command has at ``value``, a flag or a word of it.

    ``observed``: what to show in place of the flag with its value.
    """
    return Problem(
        kind="launch",
        message=message,
        observed=observed or f"{value.origin.flag} {value.text}".strip(),
        correction=correction,
        origin=value.origin,
    )
