"""How long the steps of a whole run took."""

from __future__ import annotations

import msgspec


class StepSpread(msgspec.Struct, frozen=True, kw_only=True):
    """Durations of the steps of one member over a whole run, all in seconds. Members step together."""

    steps: int
    """Steps whose duration is known or was estimated from those around them."""
    median_s: float
    """Half of them took less."""
    low_s: float
    """One in twenty took less."""
    high_s: float
    """One in twenty took more."""
