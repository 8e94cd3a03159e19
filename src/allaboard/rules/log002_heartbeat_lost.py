"""A member sent, or the leader answered, no more heartbeats.

## Why it matters
TensorFlow's and JAX's coordination service then says that the task "has crashed". It may be stopped, may
swap, be held by a debugger or by a disk that does not answer, or be alive behind a link that broke.

## What to do
Look whether the process is there and in which state (`ps -o pid,stat,etime -p PID`: T is stopped, D waits
for a disk), then at its own log and at the kernel's.
"""

from __future__ import annotations

from allaboard.contracts import Rule
from allaboard.evidence.messages import told
from allaboard.facts import Heard, Stage
from allaboard.facts.samples import heard

_SAYS = "worker 1 sent no more heartbeats"
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
    unstaged="it is read after the fact: its recordings of real runs are in tests/witnesses/samples",
)
