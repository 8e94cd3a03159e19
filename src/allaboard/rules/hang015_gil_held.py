"""A thread does not release the GIL, so the other threads of its process cannot run.

Python runs one thread at a time: the one that holds the GIL (global interpreter lock). Native code that takes
long should release it. Some does not: a regular expression that backtracks endlessly, a function called
through `ctypes.PyDLL`, an extension without `Py_BEGIN_ALLOW_THREADS`. Then no other thread of the process
runs, neither its heartbeats nor the main thread, although each may be at an innocent line.

## Why it matters
The rank is blocked. If a thread other than the main one holds the GIL, the main thread's stack may show a
collective: the rank seems to wait for the others, while the others wait for it. `KeyboardInterrupt` does not
get through, and no timeout in Python fires.

## What to do
Look at the line that is named.

- Rewrite patterns with repeats inside repeats (`(a+)+`): they take twice as long with each letter.
- Call C through `ctypes.CDLL`, which releases the GIL, instead of `PyDLL`.
- Let extensions release the GIL, or move the work into a process of its own.

`py-spy dump --native --pid PID` shows the native frames; it pauses the process while it looks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from allaboard.analysis.member_names import command_on_host
from allaboard.analysis.stacks.example_awaited import example_awaited
from allaboard.analysis.stalls.gil_contention import blocking_gil_grip, gil_holder_frame
from allaboard.analysis.stalls.stall import find_stall, waiting_evidence
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, Grip, JobView, Member, Severity
from allaboard.facts.samples import REDUCE, USER, sample_member, sample_stack, waiting_member


def check(view: JobView) -> Iterator[Claim]:
    stall = find_stall(view)
    for blocked_member in stall.gil_blocked if stall is not None else ():
        grip = blocking_gil_grip(blocked_member)
        if grip is not None and not blocked_member.is_stopped:
            yield _claim(
                view,
                blocked_member,
                grip,
                waiting_evidence(stall) if stall and stall.waiting else None,
            )


def _claim(view: JobView, member: Member, grip: Grip, peers_evidence: Evidence | None) -> Claim:
    frame = gil_holder_frame(grip)
    name = member.who.name
    # A long call that computes may still end by itself.
    activity = f"computing, {grip.cpu * 100:.0f} % of a core" if grip.busy else "asleep"
    holder = "its main thread" if grip.main else f"its thread {grip.thread}"
    blocked_threads = "its other threads" if grip.main else "its main thread"
    return Claim(
        summary=f"{name}: {holder} holds the GIL in native code at {frame} and does not release "
        f"it, so {blocked_threads} cannot run",
        who=(member.who,),
        evidence=(
            Evidence(f"the GIL held there for at least {grip.span:.1f} s, {activity}", "py-spy"),
            Evidence(
                f"waiting for it: {', '.join(grip.waiting[:4])}, {grip.wakes:.0f} wake-ups a second",
                f"/proc/{member.who.pid}/task",
            ),
            Evidence(frame.text or "source not readable", f"{frame.file}:{frame.line}"),
            *((peers_evidence,) if peers_evidence is not None else ()),
        ),
        fix=f"let the call at {frame.file}:{frame.line} release the GIL (ctypes.CDLL, not PyDLL), "
        "limit it, or move it to a process of its own; "
        + command_on_host(view, member, f"py-spy dump --native --pid {member.who.pid}"),
        severity=Severity.WARNING if grip.busy else Severity.ERROR,
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


_MATCH = Frame("/home/u/train.py", 33, "clean", "return PATTERN.match(text)")
_READ = Frame("/home/u/meter.py", 12, "watch", "library.read(device)")
_MAIN = Grip(
    thread="MainThread", frames=(_MATCH, USER), span=0.8, cpu=1.0, waiting=("beat",), wakes=180.0,
    main=True, busy=True,
)  # fmt: skip
_ASIDE = msgspec.structs.replace(
    _MAIN, thread="meter", frames=(_READ,), cpu=0.0, busy=False, waiting=("MainThread",), main=False,
    stops_main=True,
)  # fmt: skip
_INIT = Frame("/v/site-packages/tensorflow/python/eager/context.py", 600, "ensure_initialized")


def _view(grip: Grip | None, *frames: Frame, **changes: Any) -> JobView:
    sampled_stack = msgspec.structs.replace(sample_stack(*frames), grip=grip)
    sample = waiting_member if frames[0] is REDUCE else sample_member
    return example_awaited(sample(1, stack=sampled_stack, **changes))


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "a regular expression in the main thread holds the GIL": (
            _view(_MAIN, _MATCH, USER, cpu=1.0),
            "worker 1: its main thread holds the GIL in native code at train.py:33 in clean and does not "
            "release it, so its other threads cannot run",
        ),
        "another thread holds the GIL while the main thread is in a collective": (
            _view(_ASIDE, REDUCE, USER),
            "worker 1: its thread meter holds the GIL in native code at meter.py:12 in watch and does not "
            "release it, so its main thread cannot run",
        ),
    },
    silent_on={
        "a regular expression in a process without a thread that waits for the GIL": _view(
            None, _MATCH, USER, cpu=1.0
        ),
        "another thread holds the GIL, and the main thread does not wait for it": _view(
            msgspec.structs.replace(_ASIDE, stops_main=False), REDUCE, USER
        ),
        "a framework that holds the GIL while it waits for its peers in its init": _view(
            msgspec.structs.replace(_MAIN, frames=(_INIT, USER)), _INIT, USER
        ),
        "a stopped worker whose main thread holds the GIL": _view(
            _MAIN, _MATCH, USER, os_state="T"
        ),
    },
    passes=True,
    drill=("gil-held", "gil-held-aside"),
)
