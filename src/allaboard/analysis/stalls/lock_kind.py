"""Description of a wait inside a process, by the function of the standard library at the lock; and of the
threads that keep a process whose script has come to its end. Pure."""

from __future__ import annotations

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import Frame, Member, Stack
from allaboard.late_pattern import compile_late

FULL_QUEUE = "waiting for space in a queue between processes"
"""What a process does that puts something into a full queue of multiprocessing."""
_THREADING = compile_late(r"python3[^/]*/threading\.py$")
_WAITERS = (
    # end of the file's path, function, and how that wait is called
    (compile_late(r"python3[^/]*/queue\.py$"), "get", "waiting for an item from a queue"),
    (compile_late(r"python3[^/]*/queue\.py$"), "put", "waiting for space in a queue"),
    (
        compile_late(r"python3[^/]*/queue\.py$"),
        "join",
        "waiting for all items of a queue to be processed",
    ),
    (compile_late(r"python3[^/]*/multiprocessing/queues\.py$"), "put", FULL_QUEUE),
    (compile_late(r"/concurrent/futures/_base\.py$"), "result", "waiting for a future's result"),
    (compile_late(r"/concurrent/futures/_base\.py$"), "wait", "waiting for futures"),
    (_THREADING, "join", "waiting for a thread to end"),
)

MAX_SHOWN_THREADS = 3
"""Places of threads that are named."""
_FEEDER_FILE = compile_late(r"python3[^/]*/multiprocessing/queues\.py$")
_EVENT_LOOP_FILE = compile_late(r"python3[^/]*/asyncio/base_events\.py$")
UNREAD_QUEUE = "at its end, and waiting until somebody reads what it has put into a queue"
"""What a process does whose queue of multiprocessing is not read: its end waits for the queue's thread."""


def describe_wait(stack: Stack | None) -> str:
    """Return what the stack waits for; a lock as that of a queue, a future, an event or a thread."""
    position = classify_stack(stack)
    if position is Spot.ANSWER and is_in_event_loop(stack):
        return "waiting in its event loop, for an answer or for a task of its own"
    if position is not Spot.LOCK or stack is None:
        return str(position)
    if any(f.function == "_finalize_join" and _FEEDER_FILE.search(f.file) for f in stack.frames):
        return UNREAD_QUEUE
    wait_depth = 0
    # The innermost known waiter of the standard library names the wait. User frames end the search:
    # what is outside of them is not what the lock belongs to.
    for frame in stack.frames:
        if frame.is_user:
            break
        for file, function, description in _WAITERS:
            if frame.function == function and file.search(frame.file):
                return description
        wait_depth += frame.function == "wait" and _THREADING.search(frame.file) is not None
    # Event.wait is in Condition.wait.
    return {1: "waiting for a condition", 2: "waiting for an event"}.get(wait_depth, str(position))


def is_in_event_loop(stack: Stack | None) -> bool:
    """Return True if the stack waits in asyncio for whatever comes next: the tasks have no frames there."""
    frames = stack.frames if stack is not None else ()
    return any(f.function == "_run_once" and _EVENT_LOOP_FILE.search(f.file) for f in frames)


def event_loop_advice(member: Member) -> str:
    """Return how to find what a member waits for in its event loop; "" if it does not wait there."""
    if classify_stack(member.stack) is not Spot.ANSWER or not is_in_event_loop(member.stack):
        return ""
    return (
        "see which task waits: one that has ended with an exception says so only to who awaits it, so await "
        f"every task (asyncio.TaskGroup); from Python 3.14: python -m asyncio pstree {member.who.pid}"
    )


def blocked_pool_clause(member: Member) -> str:
    """Return "all 2 threads of its pool wait for results of that pool, too"; "" if that is not so."""
    count = member.stack.blocked_pool if member.stack is not None else 0
    if not count:
        return ""
    threads = (
        f"all {count} threads of its pool wait" if count > 1 else "the thread of its pool waits"
    )
    return f"{threads} for results that only this pool could work out"


def blocked_pool_advice(member: Member) -> str:
    """Return how tasks of a pool of threads do not wait for each other; "" if they do not."""
    if not blocked_pool_clause(member) or member.stack is None:
        return ""
    places = member.stack.other_thread_frames or (member.stack.main_frame,)
    return (
        f"at {places[0].file}:{places[0].line}, call the function directly instead of submitting it to the "
        "pool in which it runs itself, or give it a second ThreadPoolExecutor: a task holds its thread "
        "while it waits"
    )


def left_threads(member: Member) -> tuple[Frame, ...]:
    """Return where the threads are that the interpreter waits for at its end; () if it is not there, or they
    were not seen."""
    if member.stack is None or classify_stack(member.stack) is not Spot.LEAVING:
        return ()
    return member.stack.other_thread_frames[:MAX_SHOWN_THREADS]


def left_threads_clause(member: Member) -> str:
    """Return for what its interpreter waits, with these places; "" if it is not at its end, or they were not
    seen."""
    if describe_wait(member.stack) == UNREAD_QUEUE:
        return UNREAD_QUEUE
    places = ", ".join(map(str, left_threads(member)))
    return f"at its end, and waits for its other threads ({places})" if places else ""


def left_threads_advice(member: Member) -> str:
    """Return what to do about them, "" if there are none. A daemon among them does not keep the process, but
    neither can it be told from the others."""
    if describe_wait(member.stack) == UNREAD_QUEUE:
        return (
            "in the process that has started it, read the queue before waiting for its end (join)"
        )
    frames = left_threads(member)
    if not frames:
        return ""
    return (
        f"end the thread that is at {frames[0].file}:{frames[0].line} (send it what ends its loop), or start "
        "it with daemon=True"
    )
