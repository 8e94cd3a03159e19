"""What a signal is called, also where Python has no name for it."""

from __future__ import annotations

import signal


def signal_name(number: int) -> str:
    """``SIGKILL``; of a real-time signal, which signal(7) counts from the first, ``SIGRTMIN+3``; of any other
    number ``signal 33``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        pass
    above = number - signal.SIGRTMIN
    return f"SIGRTMIN+{above}" if above > 0 and number < signal.SIGRTMAX else f"signal {number}"
