"""A worker is idle somewhere else while the others wait for it in a collective.

## Why it matters
When a collective waits, the frameworks name nobody, or the wrong rank. This is the rank that is not in it.
It sleeps, or waits for a lock, for input, for an answer from the network or for a checkpoint's storage.

## What to do
Look at the line it is at.

If one of its threads ended with an exception, and it now waits for a queue, an event or a lock, fix what
ended that thread: what the thread was to deliver will never come.

If the worker is there on purpose (an upload by rank 0), this is a pause, not a fault. Give the others'
collective a timeout that is long enough.

These are reported as "waiting" for a minute first, and only then as this finding: a checkpoint or an
evaluation that is recognised as one, and the wait for an answer from another process (a model that is asked
for rewards over HTTP, actors, an RPC); not where a process that it started itself is stopped, or was killed
since the last step: a `Pool` starts another one, and the answer never comes. If the main thread waits while
another thread of the same process computes, you are told after a minute too.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.collectives.rank_conditional_advice import rank_conditional_hint
from allaboard.analysis.failures.killed_child import killed_child_evidence
from allaboard.analysis.member_names import on_host
from allaboard.analysis.stacks.autograph_frames import rewritten
from allaboard.analysis.stacks.stack_classifier import Spot, spot
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
"""Seconds that a shutdown may take while others wait, where nothing is seen of it."""


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
            continue  # it ends because of that, which is told by itself, and waits for the others in its end
        if spot(one.stack) not in _OTHER_RULES and find_lock_holder(one) is None:
            yield _claim(view, one, found)


def _shut(view: JobView, one: Member) -> bool:
    """Whether its interpreter is so far in its shutdown that no stack is to be had, and it does nothing."""
    if one.phase is not Phase.LEAVING or one.stopped or one.raised is not None:
        return False
    unseen = one.stack is None or not one.stack.frames
    return unseen and one.cpu < PAUSED_CORES and view.now - stalled_since(view) >= SHUTS


def _threads_work(one: Member) -> bool:
    """Whether its main thread may well wait for another one of it that computes."""
    return spot(one.stack) is Spot.LOCK and one.cpu >= PAUSED_CORES and ended_thread(one) is None


def _claim(view: JobView, one: Member, found: Stall) -> Claim:
    assert one.stack is not None
    if spot(one.stack) is Spot.LEAVING and one.stack.user is None:
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
        summary=f"the others wait for {one.who.name}, which is {describe_wait(one.stack)} at {place}"
        + (after or at)
        + (f"; {below}" if below else ""),
        who=(one.who,),
        evidence=(
            Evidence(f"idle there for at least {one.stack.span:.1f} s", one.stack.by),
            *killed_child_evidence(one),
            *child_evidence(one),
            *rewritten(one),
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
    """Its code is through, and its framework or a thread of its own keeps it in its shutdown."""
    inside = "its interpreter is past its last line of Python"
    if one.stack is not None and one.stack.frames:
        inside = f"it shuts down: {one.stack.frames[0]} for at least {one.stack.span:.1f} s"
    last = one.notes.get(JITTED_NOTE, "")
    counted = one.probed or one.step > 0
    after = f" after {one.step} steps" if counted else ""
    read = f"see in {one.log}" if counted else f"read in what pid {one.who.pid} wrote last"
    return Claim(
        summary=f"{one.who.name} has come to the end of its code{after}, while the others "
        "go on and wait for it",
        who=(one.who,),
        evidence=(
            Evidence(inside, one.stack.by if one.stack is not None else "black box"),
            *((Evidence("it called its step there", last),) if last else ()),
            waiting_evidence(found),
        ),
        fix=f"{read} why it made no more steps: all ranks must make the same number"
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
            "the others wait for worker 1, which is asleep at train.py:33 in retry",
        ),
        "asleep, while JAX's results are awaited where NumPy reads them": (
            stalled(
                member(0, framework="jax", stack=stack(_READS)),
                member(1, framework="jax", stack=stack(_SLEEP, USER)),
            ),
            "the others wait for worker 1, which is asleep at train.py:33 in retry",
        ),
        "it waits for an item that nobody makes any more": (
            stalled(
                waiting(0), member(1, stack=stack(_WAIT, _QUEUE, USER), notes=_RAISED), waiting(2)
            ),
            "the others wait for worker 1, which is waiting for an item of a queue at train.py:41 in "
            "train, after a thread of worker 1 raised ValueError: bad sample at train.py:12 in produce",
        ),
        "it waits for a thread that computes a little, and does not end": (
            stalled(
                waiting(0),
                member(1, stack=stack(_WAIT, USER), cpu=0.08),
                waiting(2),
                progress_at=30.0,
            ),
            "the others wait for worker 1, which is waiting for a condition at train.py:41 in train",
        ),
        "it trains in another thread": (
            stalled(
                waiting(0),
                member(
                    1, stack=msgspec.structs.replace(stack(_WAIT, _JOIN, USER), others=(_SLEEP,))
                ),
                waiting(2),
            ),
            "the others wait for worker 1, which is waiting for a thread to end at train.py:41 in train, "
            "and its other threads are at train.py:33 in retry",
        ),
        "it waits for an event": (
            stalled(waiting(0), member(1, stack=stack(_WAIT, _EVENT, USER)), waiting(2)),
            "the others wait for worker 1, which is waiting for an event at train.py:41 in train",
        ),
        "its code is through, and it waits in its framework's shutdown": (
            stalled(waiting(0), member(1, stack=stack(_DOWN), step=81), waiting(2)),
            "worker 1 has come to the end of its code after 81 steps, while the others go on and wait "
            "for it",
        ),
        "a service that does not answer": (
            stalled(waiting(0), member(1, stack=_ANSWER), waiting(2), progress_at=30.0),
            "the others wait for worker 1, which is waiting for the answer of another process at "
            "train.py:41 in train",
        ),
        "it waits for a future whose thread has ended": (
            stalled(waiting(0), member(1, stack=_FUTURE, notes=_RAISED), waiting(2)),
            "the others wait for worker 1, which is waiting for a future's result at train.py:41 in "
            "train, after a thread of worker 1 raised ValueError: bad sample at train.py:12 in produce",
        ),
        "its code is through, and no stack is to be had of it": (
            stalled(
                waiting(0), member(1, phase=Phase.LEAVING, step=40), waiting(2), progress_at=93.0
            ),
            "worker 1 has come to the end of its code after 40 steps, while the others go on and wait "
            "for it",
        ),
        "a checkpoint that does not move": (
            stalled(
                member(0, stack=stack(_SAVE, USER), spent=Spent(now="checkpoint")),
                waiting(1),
                waiting(2),
                progress_at=30.0,
            ),
            "the others wait for worker 0, which is writing or reading a checkpoint at "
            "train.py:41 in train",
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
        "it ends with an exception, which is told": stalled(
            waiting(0),
            member(1, stack=stack(_DOWN), raised=Raised(type="KeyError", message="11", at=88.0)),
            waiting(2),
        ),
        "a thread of it computes, on a host that is full": stalled(
            waiting(0), member(1, stack=stack(_WAIT, USER), cpu=0.08), waiting(2)
        ),
        "it shuts down, and not for long": stalled(
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
