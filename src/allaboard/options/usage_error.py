"""The error of a command line that asks for something impossible."""

from __future__ import annotations

from typing import NoReturn

from allaboard.errors import AllaboardError


class UsageError(AllaboardError):
    """The command line asks for something that cannot be done. The message is one line that says why and
    what to type instead."""


def raise_usage_error(message: str) -> NoReturn:
    """Raise UsageError with this message."""
    raise UsageError(message)
