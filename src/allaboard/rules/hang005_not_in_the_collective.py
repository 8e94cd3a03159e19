"""A worker is idle outside the collective in which the others wait for it.

## Why it matters
When a collective blocks, the frameworks name no rank, or the wrong one. This finding names the rank that is
not in it: it sleeps, or waits for a lock, for input, for an answer from the network or for a checkpoint's
storage.

## What to do
Look at the line where it is.

If one of its threads ended with an exception, and it now waits for a queue, an event or a lock, fix the
exception: what the thread should have delivered will never arrive.

If the worker is there on purpose (an upload by rank 0), this is a pause, not a fault. Give the collective of
the others a timeout that is long enough.

Some waits have the status "waiting" for a minute before they become this finding: a checkpoint or an
evaluation that is recognised as such, and the wait for an answer from another process (a reward model over
HTTP, actors, an RPC). An exception is a worker one of whose child processes is stopped, or was killed since
the last step: a `Pool` then starts another process, and the answer never arrives. If the main thread waits
while another thread of the same process computes, the finding also follows after a minute.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.collectives.rank_conditional_advice import rank_conditional_hint
from allaboard.analysis.failures.killed_child import killed_child_evidence
from allaboard.analysis.member_names import on_host
from allaboard.analysis.stacks.autograph_frames import autograph_evidence
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.checkpoint_pauses import MAX_PAUSE_S, PAUSED_CORES, is_in_short_pause
from allaboard.analysis.stalls.child_process import child_evidence
from allaboard.analysis.stalls.dead_threads import (
    THREAD_RAISED_NOTE,
    dead_thread_advice,
    dead_thread_clause,
    dead_thread_evidence,
    ended_thread,
)
from allaboard.analysis.stalls.lock_holder import find_lock_holder
from allaboard.analysis.stalls.lock_kind import describe_wait
from allaboard.analysis.stalls.stall import (
    IDLE_CORES,
    JITTED_NOTE,
    Stall,
    find_stall,
    is_still,
    waiting_evidence,
)
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.analysis.stalls.stopped_child import describe_stopped_children, resume_command
from allaboard.contracts import Rule
from allaboard.facts import (
    Certainty,
    Claim,
    Evidence,
    Frame,
    JobView,
    Member,
    Phase,
    Raised,
    Severity,
    Spent,
    Stage,
)
from allaboard.facts.samples import USER, member, stack, stalled, waiting

_OTHER_RULES = (
    Spot.USER, Spot.CHILD, Spot.DATA, Spot.FILE_LOCK, Spot.INPUT, Spot.DEBUGGER,
)  # fmt: skip


SHUTS = 6.0
"""Seconds that an interpreter's shutdown may take while others wait, if nothing can be seen of it."""


def check(view: JobView) -> Iterator[Claim]:
    found = find_stall(view)
    if found is None or not found.waiting:
        return
    for one in found.absent:
        if _shut(view, one):
            yield _left(view, one, found)
            continue
        if (
            one.stopped
            or not is_still(one)
            or one.cpu >= IDLE_CORES
            or is_in_short_pause(view, one)
        ):
            continue
        if _threads_work(one) and view.now - stalled_since(view) < MAX_PAUSE_S:
            continue
        if one.raised is not None:
            continue  # EXIT002 reports the exception; during its exit it waits for the others
        if classify_stack(one.stack) not in _OTHER_RULES and find_lock_holder(one) is None:
            yield _claim(view, one, found)


def _shut(view: JobView, one: Member) -> bool:
    """Return True if its interpreter is so far into its shutdown that it has no stack, and it is idle."""
    if one.phase is not Phase.LEAVING or one.stopped or one.raised is not None:
        return False
    unseen = one.stack is None or not one.stack.frames
    return unseen and one.cpu < PAUSED_CORES and view.now - stalled_since(view) >= SHUTS


def _threads_work(one: Member) -> bool:
    """Return True if its main thread may be waiting for another of its threads that computes."""
    return (
        classify_stack(one.stack) is Spot.LOCK
        and one.cpu >= PAUSED_CORES
        and ended_thread(one) is None
    )


def _claim(view: JobView, one: Member, found: Stall) -> Claim:
    assert one.stack is not None
    if classify_stack(one.stack) is Spot.LEAVING and one.stack.user is None:
        return _left(view, one, found)
    others = waiting_evidence(found)
    place = one.stack.place
    after = dead_thread_clause(one)
    others_of_it = () if after else one.stack.others[:3]
    at = (
        f", and its other threads are at {', '.join(map(str, others_of_it))}"
        if others_of_it
        else ""
    )
    killed = killed_child_evidence(one)
    below = describe_stopped_children(one) or (killed[0].observed if killed else "")
    look_at = others_of_it[0] if others_of_it else place
    return Claim(
        summary=f"{one.who.name} is {describe_wait(one.stack)} at {place}"
        + (after or at)
        + (f"; {below}" if below else "")
        + "; the others wait for it",
        who=(one.who,),
        evidence=(
            Evidence(f"idle there for at least {one.stack.span:.1f} s", one.stack.by),
            *killed_child_evidence(one),
            *child_evidence(one),
            *autograph_evidence(one),
            *dead_thread_evidence(one),
            others,
            Evidence(place.text or str(one.stack.frames[0]), f"{place.file}:{place.line}"),
            *(Evidence(f.text or str(f), f"{f.file}:{f.line}") for f in others_of_it),
        ),
        fix=resume_command(view, one)
        or dead_thread_advice(one, place)
        or on_host(view, one, f"py-spy dump --pid {one.who.pid}")
        + f"   # then {look_at.file}:{look_at.line}",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


def _left(view: JobView, one: Member, found: Stall) -> Claim:
    """Report a member that has finished its script, and is kept in its shutdown by its framework or a
    thread."""
    inside = "its interpreter has executed its last line of Python"
    if one.stack is not None and one.stack.frames:
        inside = f"shutting down: {one.stack.frames[0]} for at least {one.stack.span:.1f} s"
    last = one.notes.get(JITTED_NOTE, "")
    counted = one.probed or one.step > 0
    after = f" after {one.step} steps" if counted else ""
    read = f"see in {one.log}" if counted else f"see in the last output of pid {one.who.pid}"
    return Claim(
        summary=f"{one.who.name} has finished its script{after}, but the others "
        "continue and wait for it",
        who=(one.who,),
        evidence=(
            Evidence(inside, one.stack.by if one.stack is not None else "black box"),
            *((Evidence("it called its step function there", last),) if last else ()),
            waiting_evidence(found),
        ),
        fix=f"{read} why it ran no more steps: all ranks must run the same number"
        + rank_conditional_hint(one, found.waiting),
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


_DOWN = Frame("/v/lib/python3.11/site-packages/jax/_src/distributed.py", 199, "shutdown")
_SLEEP = Frame("/home/u/train.py", 33, "retry", "time.sleep(3600)")
_WAIT = Frame("/usr/lib/python3.11/threading.py", 327, "wait")
_EVENT = Frame("/usr/lib/python3.11/threading.py", 629, "wait")
_JOIN = Frame("/usr/lib/python3.11/threading.py", 1119, "join")
_QUEUE = Frame("/usr/lib/python3.11/queue.py", 171, "get")
_RAISED = {THREAD_RAISED_NOTE: "ValueError: bad sample at /home/u/train.py:12 in produce"}
_RECEIVES = Frame("/usr/lib/python3.11/socket.py", 720, "readinto")
_ANSWER = stack(_RECEIVES, Frame("/usr/lib/python3.11/http/client.py", 292, "_read_status"), USER)
_FUTURE = msgspec.structs.replace(
    stack(_WAIT, Frame("/usr/lib/python3.11/concurrent/futures/_base.py", 451, "result"), USER),
    asks=True,
)
_SAVE = Frame("/v/lib/python3.11/site-packages/torch/serialization.py", 900, "save")
_READS = Frame("/home/u/train.py", 52, "train", "value = np.asarray(loss.addressable_data(0))")
RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "asleep": (
            stalled(waiting(0), member(1, stack=stack(_SLEEP, USER)), waiting(2)),
            "worker 1 is asleep at train.py:33 in retry; the others wait for it",
        ),
        "asleep, while the others wait for JAX's results where NumPy reads them": (
            stalled(
                member(0, framework="jax", stack=stack(_READS)),
                member(1, framework="jax", stack=stack(_SLEEP, USER)),
            ),
            "worker 1 is asleep at train.py:33 in retry; the others wait for it",
        ),
        "it waits for an item, and the producing thread has ended": (
            stalled(
                waiting(0), member(1, stack=stack(_WAIT, _QUEUE, USER), notes=_RAISED), waiting(2)
            ),
            "worker 1 is waiting for an item of a queue at train.py:41 in train, after a thread of worker "
            "1 raised ValueError: bad sample at train.py:12 in produce; the others wait for it",
        ),
        "it waits for a thread that computes a little, and does not end": (
            stalled(
                waiting(0),
                member(1, stack=stack(_WAIT, USER), cpu=0.08),
                waiting(2),
                progress_at=30.0,
            ),
            "worker 1 is waiting for a condition at train.py:41 in train; the others wait for it",
        ),
        "it trains in another thread": (
            stalled(
                waiting(0),
                member(
                    1, stack=msgspec.structs.replace(stack(_WAIT, _JOIN, USER), others=(_SLEEP,))
                ),
                waiting(2),
            ),
            "worker 1 is waiting for a thread to end at train.py:41 in train, and its other threads are "
            "at train.py:33 in retry; the others wait for it",
        ),
        "it waits for an event": (
            stalled(waiting(0), member(1, stack=stack(_WAIT, _EVENT, USER)), waiting(2)),
            "worker 1 is waiting for an event at train.py:41 in train; the others wait for it",
        ),
        "its script is finished, and it waits in its framework's shutdown": (
            stalled(waiting(0), member(1, stack=stack(_DOWN), step=81), waiting(2)),
            "worker 1 has finished its script after 81 steps, but the others continue and wait for it",
        ),
        "a service that does not answer": (
            stalled(waiting(0), member(1, stack=_ANSWER), waiting(2), progress_at=30.0),
            "worker 1 is waiting for the answer of another process at train.py:41 in train; the others "
            "wait for it",
        ),
        "it waits for a future whose thread has ended": (
            stalled(waiting(0), member(1, stack=_FUTURE, notes=_RAISED), waiting(2)),
            "worker 1 is waiting for a future's result at train.py:41 in train, after a thread of worker "
            "1 raised ValueError: bad sample at train.py:12 in produce; the others wait for it",
        ),
        "its script is finished, and it has no stack": (
            stalled(
                waiting(0), member(1, phase=Phase.LEAVING, step=40), waiting(2), progress_at=93.0
            ),
            "worker 1 has finished its script after 40 steps, but the others continue and wait for it",
        ),
        "a checkpoint that does not move": (
            stalled(
                member(0, stack=stack(_SAVE, USER), spent=Spent(now="checkpoint")),
                waiting(1),
                waiting(2),
                progress_at=30.0,
            ),
            "worker 0 is writing or reading a checkpoint at train.py:41 in train; the others wait for it",
        ),
    },
    silent_on={
        "writing a checkpoint": stalled(
            member(0, stack=stack(_SAVE, USER), io=1e8), waiting(1), waiting(2)
        ),
        "a checkpoint on slow storage, for some seconds": stalled(
            member(0, stack=stack(_SAVE, USER), spent=Spent(now="checkpoint")),
            waiting(1),
            waiting(2),
        ),
        "it exits with an exception, which EXIT002 reports": stalled(
            waiting(0),
            member(1, stack=stack(_DOWN), raised=Raised(type="KeyError", message="11", at=88.0)),
            waiting(2),
        ),
        "a thread of it computes, on a host that is full": stalled(
            waiting(0), member(1, stack=stack(_WAIT, USER), cpu=0.08), waiting(2)
        ),
        "it is shutting down, but not for long": stalled(
            waiting(0), member(1, phase=Phase.LEAVING), waiting(2), progress_at=95.0
        ),
        "a service takes its time": stalled(
            waiting(0), member(1, stack=_ANSWER), waiting(2), progress_at=50.0
        ),
        "its pool asks a service": stalled(
            waiting(0), member(1, stack=_FUTURE), waiting(2), progress_at=50.0
        ),
        "short": stalled(
            waiting(0), member(1, stack=stack(_SLEEP, USER)), waiting(2), progress_at=98.5
        ),
    },
    since="0.1",
    passes=True,
    drill=(
        "asleep",
        "comes-back",
        "tf-asleep",
        "tf-asleep-reduce",
        "pair-asleep",
        "jax-asleep",
        "compiled-asleep",
        "tf-generator-starved",
    ),
)
