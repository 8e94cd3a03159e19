"""Types of option values for argparse. Each says what it expects, for messages as `-n expects …, got
"two"`."""

from __future__ import annotations

import argparse
import math
from typing import NoReturn

MAX_SECONDS = 1e9
"""Thirty years; a longer time overflows the system's timers."""


class WholeNumber:
    """A number without a sign or a fraction, within bounds that both count."""

    def __init__(self, least: int, most: int | None = None) -> None:
        self.least, self.most = least, most
        bounds = f"{least} or more" if most is None else f"from {least} to {most}"
        self.expectation = f"a number {bounds}" if most is not None else f"a number, {bounds}"

    def __call__(self, text: str) -> int:
        value = int(text) if text.isdecimal() else -1
        if value < self.least or (self.most is not None and value > self.most):
            refuse_value(self.expectation, text)
        return value


class Seconds:
    """A time in seconds, with or without a fraction."""

    def __init__(self, least: float = 0.0, most: float = MAX_SECONDS) -> None:
        self.least, self.most = least, most
        bounds = f"{least:g} or more" if most == MAX_SECONDS else f"from {least:g} to {most:g}"
        comma = "," if most == MAX_SECONDS else ""
        self.expectation = f"a number of seconds{comma} {bounds}"

    def __call__(self, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not self.least <= value <= self.most:
            refuse_value(self.expectation, text)
        return value


def refuse_value(expectation: str, text: str) -> NoReturn:
    """Raise the error that `CommandParser` turns into "OPTION expects …, got …"."""
    raise argparse.ArgumentTypeError(f'expects {expectation}, got "{text}"')
