"""A worker is alive but has not reached init, where the others wait for it.

## Why it matters
This is the most common "hang" at startup, and often it is not a hang: one worker downloads the data, another
reads a large file, a third sleeps in a retry loop. The others block in the framework's init, which cannot
know why. They wait as long as the worker lives, unless `--timeout-hard` sets a limit.

A worker that computes, reads or receives is reported at `--timeout`. A worker that only sleeps (no CPU, no
I/O, not woken for seconds) is reported once the others have waited for four seconds. If it joins later, the
finding is reported as resolved.

## What to do
Look at the line where it is; `py-spy dump --pid PID` shows more. Call init first and load the data
afterwards, or let rank 0 load the data while the others wait in a barrier *after* init.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import command_on_host
from allaboard.analysis.roll_call.roll_call import RollCall, find_roll_calls
from allaboard.analysis.stalls.stall import MIN_STUCK_S, is_stuck_idle
from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, Frame, JobView, Member, Phase, Severity
from allaboard.facts.samples import arrived_member, coming_member, gathering_job, sample_stack


def check(view: JobView) -> Iterator[Claim]:
    for roll in find_roll_calls(view):
        if not roll.held_members:
            continue
        waited = view.now - roll.first_arrival
        hard = view.timeout_hard is not None and waited >= view.timeout_hard
        over = hard or waited >= view.timeout
        for member in roll.late:
            if over or (
                waited >= MIN_STUCK_S and not member.candidate and is_stuck_idle(view, member)
            ):
                yield _claim(view, roll, member, waited, hard)


def _claim(view: JobView, roll: RollCall, member: Member, waited: float, hard: bool) -> Claim:
    frame = member.stack.user if member.stack is not None else None
    doing = f"at {frame}" if frame is not None else _describe_phase(member)
    joined = f"{len(roll.present)} of {roll.size} have joined"
    # Without the probe it is not known when they did: a process that runs is only looked at.
    is_timed = any(m.probed for m in roll.present)
    evidence = [
        Evidence(f"{joined}, {waited:.0f} s ago", "roll call")
        if is_timed
        else Evidence(joined, "stacks")
    ]
    if frame is not None and frame.text:
        evidence.append(Evidence(frame.text, f"{frame.file}:{frame.line}"))
    if member.candidate:
        evidence.append(Evidence("a child process that has not called init", "/proc"))
    name = member.who.name
    if member.candidate:
        name = f"a child of worker {member.worker} (rank {', '.join(map(str, roll.missing))}?)"
    return Claim(
        summary=f"{name} is alive but has not reached init: {doing}",
        who=(member.who,),
        evidence=tuple(evidence),
        fix=command_on_host(view, member, f"py-spy dump --pid {member.who.pid}")
        + "   # then call init before the slow part",
        severity=Severity.ERROR if hard else Severity.WARNING,
        since=roll.first_arrival,
    )


def _describe_phase(member: Member) -> str:
    if member.phase is Phase.IMPORTING:
        return f"importing {member.detail}"
    return "in user code"


_LOADING = sample_stack(Frame("/home/u/train.py", 12, "load_dataset", "data = download()"))
_ASLEEP = {"stack": _LOADING, "os_state": "S", "os_state_since": 60.5}
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a worker still loads its data after the timeout": (
            gathering_job(
                arrived_member(0), arrived_member(1), coming_member(2, stack=_LOADING), now=121.0
            ),
            "worker 2 is alive but has not reached init: at train.py:12 in load_dataset",
        ),
        "a worker is asleep, and the others have waited for four seconds": (
            gathering_job(
                arrived_member(0), arrived_member(1), coming_member(2, **_ASLEEP), now=64.0
            ),
            "worker 2 is alive but has not reached init: at train.py:12 in load_dataset",
        ),
        "the others have waited longer than `--timeout-hard` allows": (
            gathering_job(
                arrived_member(0), coming_member(1), arrived_member(2), now=90.0, timeout_hard=20.0
            ),
            "worker 1 is alive but has not reached init: in user code",
        ),
    },
    silent_on={
        "a worker computes, and the others have waited for 40 seconds, less than the timeout": gathering_job(
            arrived_member(0), arrived_member(1), coming_member(2, cpu=0.9), now=100.0
        ),
        "a worker is asleep, and the others have waited for 3.5 seconds": gathering_job(
            arrived_member(0), arrived_member(1), coming_member(2, **_ASLEEP), now=63.5
        ),
        "a worker was awake two seconds ago": gathering_job(
            arrived_member(0),
            arrived_member(1),
            coming_member(2, **_ASLEEP | {"os_state_since": 63.0, "stack": None}),
            now=65.0,
        ),
        "a worker uses the CPU, although it was last seen asleep": gathering_job(
            arrived_member(0), arrived_member(1), coming_member(2, **_ASLEEP, cpu=0.9), now=65.0
        ),
        "a sleeping child process that may not belong to the job": gathering_job(
            arrived_member(0),
            arrived_member(1),
            coming_member(2, **_ASLEEP, candidate=True),
            now=65.0,
        ),
        "all workers have joined": gathering_job(
            arrived_member(0), arrived_member(1), arrived_member(2), now=500.0
        ),
    },
    passes=True,
    drill=("asleep-before-init", "tf-asleep-before-init", "jax-asleep-before-init"),
)
