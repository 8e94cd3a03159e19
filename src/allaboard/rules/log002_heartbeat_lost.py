"""A worker stopped sending heartbeats, or the leader stopped answering them.

## Why it matters
TensorFlow's and JAX's coordination service then says that the task "has crashed". But it may be stopped,
swapping, held by a debugger or by a disk that does not answer, or alive behind a broken link.

## What to do
See whether the process is there, and in which state: `ps -o pid,stat,etime -p PID` (T is stopped, D waits
for a disk). Then read its own log and the kernel's.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import told
from allaboard.contracts import Relations, Rule
from allaboard.facts import Heard, Stage
from allaboard.facts.samples import heard

_SAYS = "worker 1 stopped sending heartbeats"
RULE = Rule(
    stage=Stage.RUNTIME,
    reads=Heard,
    check=told("LOG002"),
    fires_on={
        "the message": (
            heard(
                "LOG002",
                _SAYS,
                "tasks are unhealthy (stopped sending heartbeats)",
                fix="ps -o stat= -p PID",
            ),
            _SAYS,
        ),
    },
    silent_on={
        "another message": heard(
            "NET005", _SAYS, "tasks are unhealthy (stopped sending heartbeats)"
        )
    },
    since="0.1",
    unstaged="it is read after the fact: its recordings of real runs are in tests/readers/samples",
    relations=Relations(ends_by_abort=True, reports_silence=True),
)
