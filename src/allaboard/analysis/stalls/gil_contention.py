"""Whether one thread of a Python process keeps the interpreter to itself.

A thread that wants the GIL asks for it every 5 ms (``sys.getswitchinterval()``; ``take_gil`` in CPython's
ceval_gil.h): it stands in futex(2) at one address, computes nothing, and wakes some 200 times a second. Where
the owner runs Python code it gets what it asks for, and is elsewhere at the next look. Where it is always
found at that address, and the owner is the same, the owner is in native code that does not let go.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.analysis.stacks.stack_classifier import same_place, waits_for_peers
from allaboard.facts import Frame, Grip, Member, Stack, Task
from allaboard.formats.dumps.stack_frames import SpiedThread

WAKES = 60.0
"""Times a second that a thread wakes at least while it waits for the GIL; a busy host delays it."""
MOST = 400.0
QUIET = 0.05
"""Cores below which a thread that wakes often counts as waiting."""
SAMPLES, SURE = 24, 0.7
"""Looks at the system call of such a thread, and the share of them that must find it at one futex; on a busy
host it is on its way back to it now and then."""
FUTEX = {"x86_64": 202, "aarch64": 98, "ppc64le": 221, "s390x": 238, "riscv64": 98}
"""futex(2) in the kernel's table of each machine."""
LEAST, OLD = 0.3, 15.0
"""Seconds between the two looks, at least and at most."""


class Glance(msgspec.Struct, frozen=True):
    """One look at the threads of a process: ``tasks`` by kernel thread id; where a closer look was taken,
    ``asking`` are the threads that stood at one futex all the time, and ``spied`` its Python threads."""

    at: float
    tasks: dict[int, Task]
    asking: frozenset[int] = frozenset()
    spied: tuple[SpiedThread, ...] = ()


def may_ask(sample: str, machine: str) -> bool:
    """Whether it may stand at a futex as far as one such text tells: it does, or it runs."""
    call = sample.split()
    return len(call) < 2 or call[0] == str(FUTEX.get(machine))


def asks(samples: Sequence[str], machine: str) -> bool:
    """Whether a thread stood at one futex whenever it did not run; ``samples`` are texts of its
    /proc/PID/task/TID/syscall, proc(5)."""
    calls = [s.split()[:2] for s in samples]
    places = {tuple(c) for c in calls if len(c) == 2}
    if len(places) != 1 or machine not in FUTEX:
        return False
    number, _ = places.pop()
    return number == str(FUTEX[machine]) and sum(len(c) == 2 for c in calls) >= SURE * len(calls)


def wanting(before: Glance, now: Glance) -> dict[int, float]:
    """The threads that may be waiting for the GIL, and how often a second they woke."""
    span = now.at - before.at
    if not LEAST <= span <= OLD:
        return {}
    found = {}
    for tid, task in now.tasks.items():
        old = before.tasks.get(tid)
        if old is not None:
            rate = (task.sleeps - old.sleeps) / span
            if WAKES <= rate <= MOST and (task.cpu - old.cpu) / span < QUIET:
                found[tid] = rate
    return found


def grip(before: Glance, now: Glance, pid: int) -> Grip | None:
    """The thread that had the GIL at both looks, while another Python thread asked for it all the time;
    None where there is none, or it cannot be told."""
    one, two = _owner(before), _owner(now)
    if one is None or two is None or one.tid != two.tid or not same_place(one.frames, two.frames):
        return None
    rates = wanting(before, now)
    known = {t.tid: t.name for t in now.spied}
    sure = (known.keys() & before.asking & now.asking) - {two.tid}
    waiting = {tid: rate for tid, rate in rates.items() if tid in sure}
    old, new = before.tasks.get(two.tid), now.tasks.get(two.tid)
    if not waiting or old is None or new is None:
        return None
    span = now.at - before.at
    most = max(waiting.values())
    return Grip(
        thread=two.name or new.name,
        frames=two.frames,
        span=span,
        cpu=(new.cpu - old.cpu) / span,
        waiting=tuple(known[tid] or now.tasks[tid].name for tid in waiting),
        wakes=most,
        busy=old.state == new.state == "R",
        main=two.tid == pid,
        stops_main=pid in waiting,
    )


def _owner(glance: Glance) -> SpiedThread | None:
    return next((t for t in glance.spied if t.owns and t.tid and t.frames), None)


def gripped(member: Member) -> Grip | None:
    """The thread of this member that lets no other run, where that holds the member up: its main thread
    is that thread, or wants to run. None where that thread itself waits for the other members."""
    held = member.stack.grip if member.stack is not None else None
    if held is None or not (held.main or held.stops_main):
        return None
    return None if waits_for_peers(Stack(frames=held.frames, taken_at=0.0)) else held


def place(held: Grip) -> Frame:
    """Where it is, in the user's own code if it comes from there."""
    return next((f for f in held.frames if f.is_user), held.frames[0])
