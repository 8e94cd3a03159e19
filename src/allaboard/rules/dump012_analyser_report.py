"""PyTorch's analyser of Flight Recorder traces names ranks that missed a collective or called another.

## Why it matters
`torchfrtrace` compares the traces of all ranks. The first collective of a group that does not fit on all
ranks is where the job stood still; what it reports after that mostly follows from it.

## What to do
Look at what the named ranks did at that time: their own log, their stacks while the job hangs, a branch on
the rank, data that ran out there. If nearly all ranks are named as different, look at the one that is not.
With the traces themselves, `allaboard diagnose FOLDER` compares every rank with all others.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import known_message_check
from allaboard.contracts import Relations, Rule
from allaboard.facts import Heard
from allaboard.facts.samples import sample_heard

_EXAMPLE = sample_heard(
    "DUMP012",
    "ranks 3-7 did not join all_reduce, number 5 of group 0:default_pg, as PyTorch's Flight Recorder shows",
    "Not all ranks joining collective, sequence number: 5",
    fix="look at ranks 3-7",
)

RULE = Rule(
    reads=Heard,
    check=known_message_check("DUMP012"),
    fires_on={"five ranks are missing in the report": (_EXAMPLE, _EXAMPLE.says)},
    silent_on={
        "a message about a port that is taken": sample_heard(
            "NET005", "a port is taken", "Address already in use"
        ),
    },
    unstaged="it is read after the fact, in words taken from PyTorch's own source",
    relations=Relations(explains=("EXIT005", "LOG001", "LOG007")),
)
