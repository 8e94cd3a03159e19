"""The port of the meeting place was taken when somebody wanted to listen there.

## Why it matters
Who holds the port may be a second rank 0, an earlier job that did not end, or another program. The one
that could not listen fails at once; the others wait, or worse: they join the earlier job.

## What to do
See who holds it with `ss -ltnp`. Give each of two jobs on a host a port of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.messages import claim
from allaboard.facts import Claim, Heard, Stage
from allaboard.facts.samples import heard


def check(message: Heard) -> Iterator[Claim]:
    if message.rule == "LOG001":
        yield claim(message)


_SAYS = "port 29500 was taken when rank 0 wanted to listen there"
RULE = Rule(
    stage=Stage.STARTUP,
    reads=Heard,
    check=check,
    fires_on={
        "the message": (
            heard("LOG001", _SAYS, "message address already in use", fix="ss -ltnp"),
            _SAYS,
        ),
    },
    silent_on={"another message": heard("LOG002", _SAYS, "message address already in use")},
    since="0.1",
    unstaged="it is read after the fact: its recordings of real runs are in tests/witnesses/samples",
)
