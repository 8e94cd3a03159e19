"""Holds a member at the door of the framework's init until the roll call is complete.

The wait is a poll of one word of shared memory, in Python, with the GIL free and signals alive. It
ends when the agent lets this round through, when the agent's verdict is that the job cannot start,
or when the agent has not been heard of for ``SILENT_AGENT_S`` seconds: then training goes on without it.
"""

from __future__ import annotations

import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .blackbox import Box

POLL_INTERVAL_S = 0.005
SILENT_AGENT_S = 10.0
SILENT_LOOKS = 20
"""Looks in a row at which it was not heard of: while the agent writes its word, a look may find zeros, since
``struct.pack_into`` clears what it is about to fill, and the agent may lose the CPU right there."""
EXIT_ROLL_CALL = 3


def wait(
    box: Box,
    round_: int,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
    aloud: bool = True,
) -> None:
    """Returns when this round may go on; raises SystemExit(3) when the roll call failed, which it says
    if ``aloud``."""
    arrived = now()
    silent_looks = 0
    while True:
        heard, let_through, verdict = box.agent()
        if let_through >= round_:
            return
        if verdict:
            if aloud:
                _say(box.verdict())
            raise SystemExit(EXIT_ROLL_CALL)
        # From the arrival at the earliest: until the agent has looked here once, ``heard`` is 0.
        silent_looks = silent_looks + 1 if now() - max(heard, arrived) > SILENT_AGENT_S else 0
        if silent_looks >= SILENT_LOOKS:
            return
        try:
            sleep(POLL_INTERVAL_S)
        except OSError as error:
            # Without a number it comes from a signal handler of the program (a TimeoutError, say).
            if error.errno is None:
                raise
            # A preloaded library that fakes the clock.
            select.select([], [], [], POLL_INTERVAL_S)


def _say(text: str) -> None:
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except Exception:
        pass  # stderr may be closed or replaced: the exit code still says it
