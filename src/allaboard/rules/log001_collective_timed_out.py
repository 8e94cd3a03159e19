"""Ranks waited in a collective until its timeout for a peer that did not come.

## Why it matters
The message is written by the victims: each names an address, or nothing at all. The rank that did not write
it is the one they wait for: it is stopped, stuck, slow, in another collective, or gone.

## What to do
Read the log of the rank that is named here as silent, or look at it while it hangs: `allaboard diagnose
PID...`. Under `allaboard run`, the job itself tells you which rank it is, and where.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import told
from allaboard.contracts import Relations, Rule
from allaboard.facts import Heard, Stage
from allaboard.facts.samples import heard

_SAYS = "a rank waited 10000 ms in a collective for a peer that did not come"
RULE = Rule(
    stage=Stage.RUNTIME,
    reads=Heard,
    check=told("LOG001"),
    fires_on={
        "the message": (
            heard("LOG001", _SAYS, "Timed out waiting 10000ms", fix="allaboard diagnose PID..."),
            _SAYS,
        ),
    },
    silent_on={"another message": heard("NET005", _SAYS, "Timed out waiting 10000ms")},
    since="0.1",
    unstaged="it is read after the fact: its recordings of real runs are in tests/readers/samples",
    relations=Relations(ends_by_abort=True),
)
