"""A rank did not answer PyTorch's debug server.

## Why it matters
Each rank answers from a thread of its own, also while it waits in a collective. One that does not answer is
stopped, has ended, is cut off, or holds the GIL in native code, and the others mostly wait for it.

## What to do
Look at that process on its host: `ps -o pid,stat,etime -p PID` (T is stopped), its log, `allaboard
diagnose PID`.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import known_message_check
from allaboard.contracts import Rule
from allaboard.facts import Heard, Who
from allaboard.facts.samples import sample_heard

RULE = Rule(
    reads=Heard,
    check=known_message_check("DUMP011"),
    fires_on={
        "a rank's answer does not come in time": (
            sample_heard(
                "DUMP011",
                "rank 1 is there, and does not answer PyTorch's debug server: it may be stopped",
                "Rank 1: TimeoutError:",
                about=(Who(index=1, rank=1),),
                fix="ps -o pid,stat -p PID",
            ),
            "rank 1 is there, and does not answer PyTorch's debug server: it may be stopped",
        )
    },
    silent_on={
        "a message about a port that is taken": sample_heard(
            "NET005", "a port is taken", "Address already in use"
        )
    },
    unstaged="the debug server asks a running job; tests/instruments stages it with real ranks",
)
