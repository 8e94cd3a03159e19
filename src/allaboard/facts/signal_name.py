"""Signals: their numbers, in exit codes too, and their names, also of those for which Python has none."""

from __future__ import annotations

import signal

VALID_SIGNALS = frozenset(int(s) for s in signal.Signals)
"""Numbers of the signals that Python names."""
SHELL_SIGNAL_OFFSET = 128
"""What a shell adds to the number of a signal in the exit code of a program that it ended."""


def signal_name(number: int) -> str:
    """Return ``SIGKILL``; ``SIGRTMIN+3`` for a real-time signal, which signal(7) counts from the first;
    ``signal 33`` for any other number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        pass
    above = number - signal.SIGRTMIN
    return f"SIGRTMIN+{above}" if above > 0 and number < signal.SIGRTMAX else f"signal {number}"
