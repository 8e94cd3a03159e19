"""Why a run is not started: said in one line, with what to type instead."""

from __future__ import annotations

from typing import NoReturn

from allaboard.errors import AllaboardError


class UsageError(AllaboardError):
    """What the user asked cannot be done; the message says why and what to type."""


def raise_usage_error(message: str) -> NoReturn:
    """Ends the preparation of a run with this message."""
    raise UsageError(message)
