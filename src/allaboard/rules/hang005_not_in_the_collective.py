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
evaluation that is recognised as such, a pause in which the worker moves a progress bar, and the wait for an
answer from another process (a reward model over HTTP, actors, an RPC). An exception is a worker one of whose
child processes is stopped, or was killed since the last step: a `Pool` then starts another process, and the
answer never arrives. If the main thread waits while another thread of the same process computes, the finding
also follows after a minute.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.collectives.left_loop import left_loop_evidence
from allaboard.analysis.collectives.rank_conditional_advice import rank_conditional_hint
from allaboard.analysis.failures.killed_child import killed_child_evidence
from allaboard.analysis.member_names import command_on_host
from allaboard.analysis.stacks.autograph_frames import autograph_evidence
from allaboard.analysis.stacks.example_awaited import example_awaited
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.awaited_end import awaited_end_advice, awaited_end_evidence
from allaboard.analysis.stalls.child_process import (
    child_evidence,
    describe_stopped_children,
    resume_command,
)
from allaboard.analysis.stalls.dead_threads import (
    THREAD_RAISED_NOTE,
    dead_thread_advice,
    dead_thread_clause,
    dead_thread_evidence,
    ended_thread,
)
from allaboard.analysis.stalls.ended_child import ended_child_advice, ended_child_clause
from allaboard.analysis.stalls.expected_pauses import MAX_PAUSE_S, PAUSED_CORES, is_in_short_pause
from allaboard.analysis.stalls.lock_holder import find_lock_holder, find_own_lock
from allaboard.analysis.stalls.lock_kind import (
    blocked_pool_advice,
    blocked_pool_clause,
    describe_wait,
    event_loop_advice,
)
from allaboard.analysis.stalls.rpc_calls import waits_for_rpc_calls
from allaboard.analysis.stalls.stall import (
    IDLE_CORES,
    JITTED_NOTE,
    Stall,
    find_stall,
    is_still,
    waiting_evidence,
)
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, LockWait, Severity, Spent
from allaboard.facts.member import Member, Phase, Raised
from allaboard.facts.samples import USER, sample_member, sample_stack, stalled_job, waiting_member
from allaboard.facts.stack import ENDED_CHILD

_OTHER_RULES = (
    Spot.USER, Spot.CHILD, Spot.DATA, Spot.FILE_LOCK, Spot.INPUT, Spot.DEBUGGER,
)  # fmt: skip


MIN_SHUTDOWN_S = 6.0
"""Seconds that an interpreter's shutdown may take while others wait, if nothing can be seen of it."""


def check(view: JobView) -> Iterator[Claim]:
    stall = find_stall(view)
    if stall is None or not stall.waiting:
        return
    for absent_member in stall.absent:
        if _is_shut_down(view, absent_member):
            yield _claim_finished(view, absent_member, stall)
            continue
        if (
            absent_member.is_stopped
            or not is_still(absent_member)
            or absent_member.cpu >= IDLE_CORES
            or is_in_short_pause(view, absent_member)
            or waits_for_rpc_calls(view, absent_member)
        ):
            continue
        is_active = _has_active_threads(absent_member) or _works_between_sleeps(absent_member)
        if is_active and view.now - stalled_since(view) < MAX_PAUSE_S:
            continue
        if absent_member.raised is not None:
            continue  # EXIT002 reports the exception; during its exit it waits for the others
        if (
            classify_stack(absent_member.stack) not in _OTHER_RULES
            and find_lock_holder(absent_member) is None
            and find_own_lock(absent_member) is None
        ):
            yield _claim(view, absent_member, stall)


def _is_shut_down(view: JobView, member: Member) -> bool:
    """Return True if its interpreter is so far into its shutdown that it has no stack, and it is idle."""
    if member.phase is not Phase.LEAVING or member.is_stopped or member.raised is not None:
        return False
    has_no_stack = member.stack is None or not member.stack.frames
    return (
        has_no_stack
        and member.cpu < PAUSED_CORES
        and view.now - stalled_since(view) >= MIN_SHUTDOWN_S
    )


def _has_active_threads(member: Member) -> bool:
    """Return True if its main thread may be waiting for another of its threads that computes."""
    return (
        classify_stack(member.stack) is Spot.LOCK
        and member.cpu >= PAUSED_CORES
        and ended_thread(member) is None
    )


def _works_between_sleeps(member: Member) -> bool:
    """Return True if it uses more CPU than a loop that only waits: samples of a loop that works a little and
    sleeps a little show the sleep alone."""
    return classify_stack(member.stack) is Spot.SLEEP and member.cpu >= PAUSED_CORES


def _claim(view: JobView, member: Member, stall: Stall) -> Claim:
    assert member.stack is not None
    if classify_stack(member.stack) is Spot.LEAVING and member.stack.user is None:
        return _claim_finished(view, member, stall)
    peers_evidence = waiting_evidence(stall)
    frame = member.stack.main_frame
    thread_clause = dead_thread_clause(member)
    other_threads = () if thread_clause else member.stack.other_thread_frames[:3]
    threads_clause = (
        f", and its other threads are at {', '.join(map(str, other_threads))}"
        if other_threads
        else ""
    )
    killed = killed_child_evidence(member)
    child_clause = (
        describe_stopped_children(member)
        or (killed[0].observed if killed else "")
        or ended_child_clause(member)
        or blocked_pool_clause(member)
    )
    frame_to_check = other_threads[0] if other_threads else frame
    return Claim(
        summary=f"{member.who.name} is {describe_wait(member.stack)} at {frame}"
        + (thread_clause or threads_clause)
        + (f"; {child_clause}" if child_clause else "")
        + "; the others wait for it",
        who=(member.who,),
        evidence=(
            Evidence(f"idle there for at least {member.stack.span:.1f} s", member.stack.by),
            *awaited_end_evidence((member,)),
            *killed_child_evidence(member),
            *child_evidence(member),
            *autograph_evidence(member),
            *dead_thread_evidence(member),
            *left_loop_evidence((member,), stall.waiting),
            peers_evidence,
            Evidence(frame.text or str(member.stack.frames[0]), f"{frame.file}:{frame.line}"),
            *(Evidence(f.text or str(f), f"{f.file}:{f.line}") for f in other_threads),
        ),
        fix=resume_command(view, member)
        or dead_thread_advice(member, frame)
        or ended_child_advice(member, frame)
        or awaited_end_advice((member,))
        or blocked_pool_advice(member)
        or event_loop_advice(member)
        or command_on_host(view, member, f"py-spy dump --pid {member.who.pid}")
        + f"   # then {frame_to_check.file}:{frame_to_check.line}",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


def _claim_finished(view: JobView, member: Member, stall: Stall) -> Claim:
    """Report a member that has finished its script, and is kept in its shutdown by its framework or a
    thread."""
    state = "its interpreter has executed its last line of Python"
    if member.stack is not None and member.stack.frames:
        state = f"shutting down: {member.stack.frames[0]} for at least {member.stack.span:.1f} s"
    jitted_at = member.notes.get(JITTED_NOTE, "")
    steps_known = member.probed or member.step > 0
    after_steps = f" after {member.step} steps" if steps_known else ""
    read = (
        f"see in {member.log}" if steps_known else f"see in the last output of pid {member.who.pid}"
    )
    return Claim(
        summary=f"{member.who.name} has finished its script{after_steps}, but the others "
        "continue and wait for it",
        who=(member.who,),
        evidence=(
            Evidence(state, member.stack.by if member.stack is not None else "black box"),
            *((Evidence("it called its step function there", jitted_at),) if jitted_at else ()),
            waiting_evidence(stall),
        ),
        fix=f"{read} why it ran no more steps: all ranks must run the same number"
        + rank_conditional_hint(member, stall.waiting),
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


_DOWN = Frame("/v/lib/python3.11/site-packages/jax/_src/distributed.py", 199, "shutdown")
_SLEEP = Frame("/home/u/train.py", 33, "retry", "time.sleep(3600)")
_FLOCK = Frame("/home/u/train.py", 20, "cached", "fcntl.flock(file, fcntl.LOCK_EX)")
_WAIT = Frame("/usr/lib/python3.11/threading.py", 327, "wait")
_EVENT = Frame("/usr/lib/python3.11/threading.py", 629, "wait")
_JOIN = Frame("/usr/lib/python3.11/threading.py", 1119, "join")
_QUEUE = Frame("/usr/lib/python3.11/queue.py", 171, "get")
_RAISED = {THREAD_RAISED_NOTE: "ValueError: bad sample at /home/u/train.py:12 in produce"}
_RECEIVES = Frame("/usr/lib/python3.11/socket.py", 720, "readinto")
_ANSWER = sample_stack(
    _RECEIVES, Frame("/usr/lib/python3.11/http/client.py", 292, "_read_status"), USER
)
_FROM_CHILD = sample_stack(
    Frame("/usr/lib/python3.11/multiprocessing/connection.py", 379, "_recv"),
    Frame("/usr/lib/python3.11/multiprocessing/queues.py", 103, "get"),
    USER,
)
_POOL = msgspec.structs.replace(
    sample_stack(_WAIT, Frame("/usr/lib/python3.11/multiprocessing/pool.py", 768, "wait"), USER),
    idle_pool=2,
)
_LOOP = sample_stack(
    Frame("/usr/lib/python3.11/selectors.py", 468, "select"),
    Frame("/usr/lib/python3.11/asyncio/base_events.py", 1884, "_run_once"),
    USER,
)
_CHILD_ENDED = msgspec.structs.replace(_FROM_CHILD, children=((4711, ENDED_CHILD),))
_CHILD_LIVES = msgspec.structs.replace(
    _FROM_CHILD, children=((4711, ENDED_CHILD), (4712, "python train.py"))
)
_FUTURE = msgspec.structs.replace(
    sample_stack(
        _WAIT, Frame("/usr/lib/python3.11/concurrent/futures/_base.py", 451, "result"), USER
    ),
    asks=True,
)
_NESTED = msgspec.structs.replace(
    _FUTURE, asks=False, blocked_pool=2, other_thread_frames=(_SLEEP,)
)
_SAVE = Frame("/v/lib/python3.11/site-packages/torch/serialization.py", 900, "save")
_READS = Frame("/home/u/train.py", 52, "train", "value = np.asarray(loss.addressable_data(0))")
RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "the child process that fills a worker's queue has ended": (
            example_awaited(sample_member(1, stack=_CHILD_ENDED)),
            "worker 1 is waiting for the answer of another process at train.py:41 in train; its child "
            "process 4711, which might have sent it, has ended; the others wait for it",
        ),
        "a worker has waited in its event loop for a minute": (
            example_awaited(sample_member(1, stack=_LOOP), progress_at=30.0),
            "worker 1 is waiting in its event loop, for an answer or for a task of its own at train.py:41 in "
            "train; the others wait for it",
        ),
        "a process of a worker's pool was lost, and the others have nothing to do": (
            example_awaited(sample_member(1, stack=_POOL)),
            "worker 1 is waiting for the answer of another process at train.py:41 in train; all 2 processes "
            "of its pool wait for a task: the one that it waits for is lost; the others wait for it",
        ),
        "a worker sleeps while it holds a file lock for which the others wait": (
            stalled_job(
                sample_member(0, stack=sample_stack(_SLEEP, USER)),
                sample_member(1, stack=sample_stack(_FLOCK, USER)),
                lock_waits=(LockWait(101, (100,), "/tmp/index.lock"),),
            ),
            "worker 0 is asleep at train.py:33 in retry; the others wait for it",
        ),
        "a worker is asleep while the others wait in a collective": (
            example_awaited(sample_member(1, stack=sample_stack(_SLEEP, USER))),
            "worker 1 is asleep at train.py:33 in retry; the others wait for it",
        ),
        "a worker is asleep while the others wait where NumPy reads results of JAX": (
            stalled_job(
                sample_member(0, framework="jax", stack=sample_stack(_READS)),
                sample_member(1, framework="jax", stack=sample_stack(_SLEEP, USER)),
            ),
            "worker 1 is asleep at train.py:33 in retry; the others wait for it",
        ),
        "a worker waits for a queue that an ended thread should have filled": (
            example_awaited(
                sample_member(1, stack=sample_stack(_WAIT, _QUEUE, USER), notes=_RAISED)
            ),
            "worker 1 is waiting for an item from a queue at train.py:41 in train, after a thread of worker "
            "1 raised ValueError: bad sample at train.py:12 in produce; the others wait for it",
        ),
        "the tasks of a worker's pool of threads wait for tasks of the same pool": (
            example_awaited(sample_member(1, stack=_NESTED)),
            "worker 1 is waiting for a future's result at train.py:41 in train, and its other threads are "
            "at train.py:33 in retry; all 2 threads of its pool wait for results that only this pool could "
            "work out; the others wait for it",
        ),
        "a worker is asleep, and its progress bar has stood still for three seconds": (
            example_awaited(sample_member(1, stack=sample_stack(_SLEEP, USER), redrawn_at=97.0)),
            "worker 1 is asleep at train.py:33 in retry; the others wait for it",
        ),
        "a worker has waited for more than a minute for a thread that computes a little": (
            example_awaited(
                sample_member(1, stack=sample_stack(_WAIT, USER), cpu=0.08), progress_at=30.0
            ),
            "worker 1 is waiting for a condition at train.py:41 in train; the others wait for it",
        ),
        "the main thread waits for another thread, which is asleep in the training": (
            example_awaited(
                sample_member(
                    1,
                    stack=msgspec.structs.replace(
                        sample_stack(_WAIT, _JOIN, USER), other_thread_frames=(_SLEEP,)
                    ),
                )
            ),
            "worker 1 is waiting for a thread to end at train.py:41 in train, and its other threads are "
            "at train.py:33 in retry; the others wait for it",
        ),
        "a worker waits for a `threading.Event` that is not set": (
            example_awaited(sample_member(1, stack=sample_stack(_WAIT, _EVENT, USER))),
            "worker 1 is waiting for an event at train.py:41 in train; the others wait for it",
        ),
        "a worker has finished its script, and waits in its framework's shutdown": (
            example_awaited(sample_member(1, stack=sample_stack(_DOWN), step=81)),
            "worker 1 has finished its script after 81 steps, but the others continue and wait for it",
        ),
        "a worker has waited for more than a minute for the answer of a service": (
            example_awaited(sample_member(1, stack=_ANSWER), progress_at=30.0),
            "worker 1 is waiting for the answer of another process at train.py:41 in train; the others "
            "wait for it",
        ),
        "a worker waits for a future whose thread has ended with an exception": (
            example_awaited(sample_member(1, stack=_FUTURE, notes=_RAISED)),
            "worker 1 is waiting for a future's result at train.py:41 in train, after a thread of worker "
            "1 raised ValueError: bad sample at train.py:12 in produce; the others wait for it",
        ),
        "a worker has finished its script, and its stack cannot be read any more": (
            example_awaited(sample_member(1, phase=Phase.LEAVING, step=40), progress_at=93.0),
            "worker 1 has finished its script after 40 steps, but the others continue and wait for it",
        ),
        "a checkpoint without any I/O for more than a minute": (
            stalled_job(
                sample_member(0, stack=sample_stack(_SAVE, USER), spent=Spent(now="checkpoint")),
                waiting_member(1),
                waiting_member(2),
                progress_at=30.0,
            ),
            "worker 0 is writing or reading a checkpoint at train.py:41 in train; the others wait for it",
        ),
    },
    silent_on={
        "a worker is asleep between two states of its progress bar": example_awaited(
            sample_member(1, stack=sample_stack(_SLEEP, USER), redrawn_at=99.5)
        ),
        "a process of a worker's pool is at work": example_awaited(
            sample_member(1, stack=msgspec.structs.replace(_POOL, idle_pool=0))
        ),
        "a worker sleeps while another waits for a file lock that no worker holds": stalled_job(
            sample_member(0, stack=sample_stack(_SLEEP, USER)),
            sample_member(1, stack=sample_stack(_FLOCK, USER)),
            lock_waits=(LockWait(101, (77,), "/tmp/index.lock"),),
        ),
        "a worker that works a little and sleeps a little in turn": stalled_job(
            waiting_member(0), sample_member(1, stack=sample_stack(_SLEEP), cpu=0.07)
        ),
        "one child process has ended, but another may still fill the queue": example_awaited(
            sample_member(1, stack=_CHILD_LIVES)
        ),
        "a child process has ended, but the worker waits for a service": stalled_job(
            waiting_member(0),
            sample_member(
                1, stack=msgspec.structs.replace(_ANSWER, children=((4711, ENDED_CHILD),))
            ),
        ),
        "a worker that writes a checkpoint": stalled_job(
            sample_member(0, stack=sample_stack(_SAVE, USER), io=1e8),
            waiting_member(1),
            waiting_member(2),
        ),
        "a checkpoint on slow storage, without any I/O for 10 seconds": stalled_job(
            sample_member(0, stack=sample_stack(_SAVE, USER), spent=Spent(now="checkpoint")),
            waiting_member(1),
            waiting_member(2),
        ),
        "a worker without a probe sleeps in what its checkpoint writes to": example_awaited(
            sample_member(1, stack=sample_stack(_SLEEP, _SAVE, USER), probed=False)
        ),
        "a worker that exits with an exception, which EXIT002 reports": example_awaited(
            sample_member(
                1,
                stack=sample_stack(_DOWN),
                raised=Raised(type="KeyError", message="11", raised_at=88.0),
            )
        ),
        "a worker waits for its other thread, which computes on an overloaded host": example_awaited(
            sample_member(1, stack=sample_stack(_WAIT, USER), cpu=0.08)
        ),
        "a worker that has been shutting down for 5 seconds": example_awaited(
            sample_member(1, phase=Phase.LEAVING), progress_at=95.0
        ),
        "a service that has taken 50 seconds to answer so far": example_awaited(
            sample_member(1, stack=_ANSWER), progress_at=50.0
        ),
        "a thread in a worker's pool has waited for a service for 50 seconds": example_awaited(
            sample_member(1, stack=_FUTURE), progress_at=50.0
        ),
        "a worker that has kept the others waiting for 1.5 seconds": example_awaited(
            sample_member(1, stack=sample_stack(_SLEEP, USER)), progress_at=98.5
        ),
    },
    passes=True,
    relations=Relations(follows_from=("DATA001",)),
    drill=(
        "asleep",
        "comes-back",
        "tf-asleep",
        "tf-asleep-reduce",
        "pair-asleep",
        "jax-asleep",
        "compiled-asleep",
        "tf-generator-starved",
        "nested-pool",
    ),
)
