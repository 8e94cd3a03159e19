"""The name of the meeting place does not resolve.

## Why it matters
PyTorch prints a warning and goes on to try for minutes; TensorFlow and JAX say nothing.

## What to do
`getent hosts NAME` on the host that says so. In Kubernetes: is there a headless Service of that name, and is
the pod it names ready? A short name needs the search domain of the other's namespace.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.messages import claim
from allaboard.facts import Claim, Heard, Stage
from allaboard.facts.samples import heard


def check(message: Heard) -> Iterator[Claim]:
    if message.rule == "LOG002":
        yield claim(message)


_SAYS = "the name trainer-0 of the meeting place does not resolve"
RULE = Rule(
    stage=Stage.STARTUP,
    reads=Heard,
    check=check,
    fires_on={
        "the message": (
            heard("LOG002", _SAYS, "gai error: -2", fix="getent hosts trainer-0"),
            _SAYS,
        ),
    },
    silent_on={"another message": heard("LOG001", _SAYS, "gai error: -2")},
    since="0.1",
    unstaged="it is read after the fact, in words taken from the frameworks' own source",
)
