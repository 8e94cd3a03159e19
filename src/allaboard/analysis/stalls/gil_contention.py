"""Threads of a Python process that hold the GIL and do not release it.

A thread that wants the GIL asks for it every 5 ms (``sys.getswitchinterval()``; ``take_gil`` in CPython's
ceval_gil.h): it waits in futex(2) at one address, computes nothing, and wakes some 200 times a second. While
the owner runs Python code, the thread soon gets the GIL and is elsewhere at the next look. If it is found at
that address at every look, and the owner stays the same, the owner is in native code that holds the GIL.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.analysis.stacks.stack_classifier import is_peer_wait, is_same_place
from allaboard.facts import Frame, Grip, Member, Stack, Task
from allaboard.formats.dumps.thread_dumps.stack_frames import SpiedThread

MIN_GIL_WAKES_PER_S = 60.0
"""Wake-ups a second that a thread makes at least while it waits for the GIL; a busy host delays them."""
MAX_GIL_WAKES_PER_S = 400.0
"""Wake-ups a second above which a thread does something else; the GIL is asked for 200 times a second."""
WAITING_THREAD_CORES = 0.05
"""Cores below which a thread that wakes often counts as waiting for the GIL."""
SYSCALL_SAMPLES, MIN_FUTEX_SHARE = 24, 0.7
"""Number of samples of such a thread's system call, and the share of them that must show it at one futex. On
a busy host it is on its way back to the futex now and then."""
FUTEX_SYSCALL = {"x86_64": 202, "aarch64": 98, "ppc64le": 221, "s390x": 238, "riscv64": 98}
"""Number of futex(2) in the kernel's system call table of each machine architecture."""
MIN_LOOK_SPAN_S, MAX_LOOK_SPAN_S = 0.3, 15.0
"""Least and most seconds between the two snapshots that are compared."""


class ThreadsSnapshot(msgspec.Struct, frozen=True):
    """The threads of a process at one moment."""

    taken_at: float
    """Time of the snapshot (s, CLOCK_MONOTONIC)."""
    tasks: dict[int, Task]
    """The kernel's counters of each thread, by kernel thread id."""
    at_futex: frozenset[int] = frozenset()
    """Ids of the threads that stayed at one futex; empty unless system calls were sampled."""
    python_threads: tuple[SpiedThread, ...] = ()
    """The Python threads with their frames; empty unless py-spy was asked."""


def may_be_at_futex(sample: str, machine: str) -> bool:
    """Return True if one sample of /proc/PID/task/TID/syscall shows the thread at a futex, or running."""
    call = sample.split()
    return len(call) < 2 or call[0] == str(FUTEX_SYSCALL.get(machine))


def stays_at_futex(samples: Sequence[str], machine: str) -> bool:
    """Return True if a thread was at one and the same futex whenever it did not run.

    ``samples`` are texts of its /proc/PID/task/TID/syscall, see proc(5).
    """
    calls = [s.split()[:2] for s in samples]
    calls_seen = {tuple(c) for c in calls if len(c) == 2}
    if len(calls_seen) != 1 or machine not in FUTEX_SYSCALL:
        return False
    number, _ = calls_seen.pop()
    return number == str(FUTEX_SYSCALL[machine]) and sum(
        len(c) == 2 for c in calls
    ) >= MIN_FUTEX_SHARE * len(calls)


def possible_gil_waiters(earlier: ThreadsSnapshot, later: ThreadsSnapshot) -> dict[int, float]:
    """Return the wake-ups a second of the threads that may be waiting for the GIL, by kernel thread id."""
    span = later.taken_at - earlier.taken_at
    if not MIN_LOOK_SPAN_S <= span <= MAX_LOOK_SPAN_S:
        return {}
    wakes_per_s = {}
    for tid, task in later.tasks.items():
        earlier_task = earlier.tasks.get(tid)
        if earlier_task is not None:
            rate = (task.sleeps - earlier_task.sleeps) / span
            if (
                MIN_GIL_WAKES_PER_S <= rate <= MAX_GIL_WAKES_PER_S
                and (task.cpu - earlier_task.cpu) / span < WAITING_THREAD_CORES
            ):
                wakes_per_s[tid] = rate
    return wakes_per_s


def find_gil_grip(earlier: ThreadsSnapshot, later: ThreadsSnapshot, pid: int) -> Grip | None:
    """Return the thread of process ``pid`` that kept the GIL from one snapshot to the next.

    Another Python thread must have waited for the GIL all that time. Return None if there is no such thread,
    or the snapshots cannot show it.
    """
    earlier_owner, owner = _gil_owner(earlier), _gil_owner(later)
    # A thread that runs Python code releases the GIL on request, and its place changes between two
    # samples. The same owner at the same place is in native code that holds on to it.
    if (
        earlier_owner is None
        or owner is None
        or earlier_owner.thread_id != owner.thread_id
        or not is_same_place(earlier_owner.frames, owner.frames)
    ):
        return None
    rates = possible_gil_waiters(earlier, later)
    python_names = {t.thread_id: t.name for t in later.python_threads}
    # Only threads that were at one futex in both snapshots are proven to wait; the rest may sleep.
    proven_waiting = (python_names.keys() & earlier.at_futex & later.at_futex) - {owner.thread_id}
    waiting = {tid: rate for tid, rate in rates.items() if tid in proven_waiting}
    earlier_task, later_task = earlier.tasks.get(owner.thread_id), later.tasks.get(owner.thread_id)
    if not waiting or earlier_task is None or later_task is None:
        return None
    span = later.taken_at - earlier.taken_at
    most = max(waiting.values())
    return Grip(
        thread=owner.name or later_task.name,
        frames=owner.frames,
        span=span,
        cpu=(later_task.cpu - earlier_task.cpu) / span,
        waiting=tuple(python_names[tid] or later.tasks[tid].name for tid in waiting),
        wakes=most,
        busy=earlier_task.state == later_task.state == "R",
        main=owner.thread_id == pid,
        stops_main=pid in waiting,
    )


def _gil_owner(snapshot: ThreadsSnapshot) -> SpiedThread | None:
    return next(
        (t for t in snapshot.python_threads if t.owns_gil and t.thread_id and t.frames), None
    )


def blocking_gil_grip(member: Member) -> Grip | None:
    """Return the grip on the GIL that holds this member up, or None.

    Its main thread is the one that keeps the GIL, or waits for it. A thread that itself waits for the other
    members while it keeps the GIL is not to blame: return None.
    """
    gil_holder = member.stack.grip if member.stack is not None else None
    if gil_holder is None or not (gil_holder.main or gil_holder.stops_main):
        return None
    return None if is_peer_wait(Stack(frames=gil_holder.frames, taken_at=0.0)) else gil_holder


def gil_holder_frame(gil_holder: Grip) -> Frame:
    """Return the frame to show for the thread that keeps the GIL: the innermost one of user code, if any."""
    return next((f for f in gil_holder.frames if f.is_user), gil_holder.frames[0])
