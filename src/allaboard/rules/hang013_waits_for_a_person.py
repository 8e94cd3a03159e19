"""A worker waits for keyboard input (`input()`, a debugger) while the others wait for it.

## Why it matters
Under a launcher, a worker's standard input is not connected to a terminal. The prompt is in a log file, if
anywhere, and the others block in their collective until a timeout that names no rank.

## What to do
Remove the `breakpoint()`, `pdb.set_trace()` or `input()`, or make sure that only one process reaches it,
outside the training. To debug one rank, start it alone (`-n 1`), or inspect it where it hangs: `py-spy dump
--locals --pid PID`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.stacks.example_awaited import example_awaited
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.stall import IDLE_CORES, find_stall, is_still, waiting_evidence
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Member
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import REDUCE, USER, sample_member, sample_stack, stalled_job

INPUT_SPOTS = (Spot.INPUT, Spot.DEBUGGER)
"""Places in a stack that wait for keyboard input."""


def check(view: JobView) -> Iterator[Claim]:
    stall = find_stall(view)
    if stall is None or not stall.waiting:
        return
    for absent_member in stall.absent:
        if (
            not absent_member.is_stopped
            and is_still(absent_member)
            and absent_member.cpu < IDLE_CORES
            and classify_stack(absent_member.stack) in INPUT_SPOTS
        ):
            yield _claim(view, absent_member, waiting_evidence(stall))


def _claim(view: JobView, member: Member, peers_evidence: Evidence) -> Claim:
    assert member.stack is not None
    frame = member.stack.main_frame
    in_debugger = classify_stack(member.stack) is Spot.DEBUGGER
    state = "is in a debugger" if in_debugger else "waits for input"
    # A debugger stops before the line at which it is: the breakpoint() itself is above.
    place = f"{frame.file}:{frame.line}"
    remove = (
        f"remove the breakpoint that stopped it before {place}"
        if in_debugger
        else f"remove it at {place}"
    )
    return Claim(
        summary=f"{member.who.name} {state} at {frame}; the others wait for it",
        who=(member.who,),
        evidence=(
            Evidence(f"idle there for at least {member.stack.span:.1f} s", member.stack.by),
            peers_evidence,
            Evidence(frame.text or str(frame), f"{frame.file}:{frame.line}"),
        ),
        fix=f"{remove}; its prompt is in {member.log}",
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
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "a worker waits in `input()`": (
            example_awaited(sample_member(1, stack=sample_stack(_ASK, USER))),
            "worker 1 waits for input at train.py:12 in ask; the others wait for it",
        ),
        "a worker stands at a prompt of pdb": (
            example_awaited(sample_member(1, stack=sample_stack(*_PDB))),
            "worker 1 is in a debugger at train.py:30 in train; the others wait for it",
        ),
    },
    silent_on={
        "all workers wait for input, and none of them in a collective": stalled_job(
            *(sample_member(r, stack=sample_stack(_ASK, USER)) for r in range(3))
        ),
        "a worker in pdb that is given commands": example_awaited(
            sample_member(1, stack=sample_stack(*_PDB, moving=True))
        ),
        "all workers are in a collective": example_awaited(
            sample_member(1, stack=sample_stack(REDUCE, USER))
        ),
    },
    retry=Retry.NEVER,
    passes=True,
    drill=("input",),
)
