"""A worker waits for somebody to type (`input()`, a debugger) while the others wait for it.

## Why it matters
Under a launcher nobody sits at the worker's standard input. The question is in a log file, if anywhere, and
the others stand in their collective until a timeout that names nobody.

## What to do
Remove the `breakpoint()`, `pdb.set_trace()` or `input()`, or make sure that one process alone reaches it,
outside the training. To debug one rank, start it by itself (`-n 1`), or attach to it where it hangs:
`py-spy dump --locals --pid PID`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.stacks.stack_classifier import Spot, spot
from allaboard.analysis.stalls.stall import IDLE_CORES, find_stall, is_still, waiting_evidence
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Member, Stage
from allaboard.facts.samples import REDUCE, USER, member, stack, stalled, waiting

PLACES = (Spot.INPUT, Spot.DEBUGGER)


def check(view: JobView) -> Iterator[Claim]:
    found = find_stall(view)
    if found is None or not found.waiting:
        return
    for one in found.absent:
        if not one.stopped and is_still(one) and one.cpu < IDLE_CORES and spot(one.stack) in PLACES:
            yield _claim(view, one, waiting_evidence(found))


def _claim(view: JobView, one: Member, others: Evidence) -> Claim:
    assert one.stack is not None
    place = one.stack.place
    asks = "stands in a debugger" if spot(one.stack) is Spot.DEBUGGER else "waits for input"
    return Claim(
        summary=f"{one.who.name} {asks} at {place}, and the others wait for it",
        who=(one.who,),
        evidence=(
            Evidence(f"idle there for at least {one.stack.span:.1f} s", one.stack.by),
            others,
            Evidence(place.text or str(place), f"{place.file}:{place.line}"),
        ),
        fix=f"remove it at {place.file}:{place.line}; its question is in {one.log}",
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


_ASK = Frame("/home/u/train.py", 12, "ask", "answer = input('go on? ')")
_PDB = (
    Frame("/usr/lib/python3.11/cmd.py", 126, "cmdloop"),
    Frame("/usr/lib/python3.11/pdb.py", 354, "_cmdloop"),
    Frame("/usr/lib/python3.11/bdb.py", 90, "trace_dispatch"),
    Frame("/home/u/train.py", 30, "train", "loss.backward()"),
)
RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "input()": (
            stalled(waiting(0), member(1, stack=stack(_ASK, USER)), waiting(2)),
            "worker 1 waits for input at train.py:12 in ask, and the others wait for it",
        ),
        "pdb": (
            stalled(waiting(0), member(1, stack=stack(*_PDB)), waiting(2)),
            "worker 1 stands in a debugger at train.py:30 in train, and the others wait for it",
        ),
    },
    silent_on={
        "nobody waits for it": stalled(*(member(r, stack=stack(_ASK, USER)) for r in range(3))),
        "somebody types": stalled(
            waiting(0), member(1, stack=stack(*_PDB, moving=True)), waiting(2)
        ),
        "in the collective": stalled(waiting(0), member(1, stack=stack(REDUCE, USER)), waiting(2)),
    },
    since="0.1",
    passes=True,
    drill=("input",),
)
