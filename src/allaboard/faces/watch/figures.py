"""Numbers for people: durations, rates, shares."""

from __future__ import annotations


def format_duration(seconds: float) -> str:
    """Return ``42 s``, ``3:05 min`` or ``26:05 h``."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"


def format_step_time(seconds: float | None) -> str:
    """Return ``54 ms`` or ``1.2 s``; ``-`` if it is not known."""
    if seconds is None:
        return "-"
    if seconds < 0.0995:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds * 1e3:.0f} ms" if seconds < 1.0 else f"{seconds:.3g} s"


def format_rate(per_s: float) -> str:
    """Return steps per second with three digits; ``-`` for none."""
    return f"{per_s:.3g}" if per_s else "-"


def format_share(share: float) -> str:
    """Return ``17%``."""
    return f"{share * 100:.0f}%"
