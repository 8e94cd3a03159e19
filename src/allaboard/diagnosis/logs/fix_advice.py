"""What to do about an end that was read in a log: commands to type, where the line that tells it is all there
is. Pure."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from allaboard.analysis.failures.failure_causality import CRASH_SIGNALS, USER_SIGNALS
from allaboard.facts import Claim, Member

_IN_A_LOG = ("read ", "see in ")
"""How advice begins that sends to a log alone."""


def next_step(made: Claim, one: Member | None, where: Sequence[str]) -> str:
    """The advice of a claim about ``one``, of which ``where`` are the places in what was read."""
    if not where or one is None:
        return f"read {where[0]}" if where else made.fix
    if one.raised is not None:
        if made.fix.startswith(_IN_A_LOG):
            return f"read {where[0]}"
        # Live it names the log; without a line of the user's there is none to be mended.
        what = made.fix.partition("; the whole traceback")[0]
        return f"{what}; the whole traceback is in {where[0]}"
    end = one.exit
    if end is not None and (end.oom or end.signal in USER_SIGNALS):
        return made.fix
    if end is not None and end.signal == signal.SIGKILL and " exited with code " in end.last_line:
        return f"docker inspect -f '{{{{.State.OOMKilled}}}}' $(docker ps -aqf name={one.who.host})"
    if end is not None and end.signal == signal.SIGKILL:
        there = f"on {one.who.host}: " if one.who.host else "on its host: "
        return f"{there}dmesg -T | grep -iE 'killed process|oom'; then ask the batch system who ended it"
    if end is not None and end.signal in CRASH_SIGNALS:
        return (
            f"read what it wrote before {where[0]}; PYTHONFAULTHANDLER=1 shows the line that it was at, "
            "ulimit -c unlimited leaves a core"
        )
    return f"read {where[0]}"
