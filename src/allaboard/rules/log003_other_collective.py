"""Some workers called other collectives than their peers.

## Why it matters
Collectives are matched by their order alone. If ranks run different code, have different numbers of
batches, or create their variables in another order, they meet in the wrong collective: at best an error, at
worst wrong sums.

## What to do
Compare what the ranks do: branches on the rank, loops over data of different length, models that differ.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import told
from allaboard.contracts import Rule
from allaboard.facts import Heard, Stage
from allaboard.facts.samples import heard

_SAYS = "at collective 216 members called different operations (type 0 and type 1)"
RULE = Rule(
    stage=Stage.RUNTIME,
    reads=Heard,
    check=told("LOG003"),
    fires_on={
        "the message": (
            heard(
                "LOG003",
                _SAYS,
                "Collective instance 216 expected type 0",
                fix="compare the workers",
            ),
            _SAYS,
        ),
    },
    silent_on={
        "another message": heard("NET005", _SAYS, "Collective instance 216 expected type 0")
    },
    since="0.1",
    unstaged="it is read after the fact, in words taken from the frameworks' own source",
)
