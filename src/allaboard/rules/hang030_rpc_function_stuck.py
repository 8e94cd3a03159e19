"""A function that one worker runs for another, by PyTorch's RPC, does not return.

## Why it matters
`rpc_sync`, `rpc_async(...).wait()` and `RRef.to_here()` wait without a limit if their timeout is 0, and else
raise an error that names a timeout and not the line at fault. The function runs in a thread of the process
that was called, whose main thread is often in `rpc.shutdown` and shows nothing.

## What to do
Look at the line that is named: it is in the function that was called, on the worker that runs it. Give the
call a timeout (`rpc.rpc_sync(..., timeout=60)`) so that it raises an error where its caller waits.

A function may rightly take long (a game, an evaluation): the status is "waiting" for a minute, with the
worker and the line, and this finding follows after that, if the function stays at one place and the process
neither reads nor writes. If it sleeps there, it follows after five minutes: a function that paces itself
looks the same. A call does not tell which worker it went to: if several run a function, each is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.member_names import command_on_host, conjugate_verb, name_by_rank
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.expected_pauses import MAX_PAUSE_S
from allaboard.analysis.stalls.lock_kind import describe_wait
from allaboard.analysis.stalls.rpc_calls import RpcFunction, find_rpc_wait
from allaboard.analysis.stalls.stall import IDLE_CORES, is_settled_stack
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.analysis.stalls.stuck_members import MIN_BUSY_SAMPLES, MIN_BUSY_SPAN_S
from allaboard.contracts import Rule
from allaboard.facts import ATTACHED, Certainty, Claim, Evidence, Frame, JobView, Member, Severity
from allaboard.facts.samples import USER, sample_member, sample_stack, stalled_job

MAX_SLEEPING_S = 300.0
"""Seconds that a function may sleep at one line. One that paces itself (a game, a poll of a service) wakes
up again and again for a moment, which samples do not show."""


def check(view: JobView) -> Iterator[Claim]:
    rpc_wait = find_rpc_wait(view)
    if rpc_wait is None:
        return
    waited_s = view.now - stalled_since(view)
    for function in rpc_wait.functions:
        is_asleep = classify_stack(function.stack) is Spot.SLEEP
        # Who diagnoses a process has waited already.
        has_waited = (
            waited_s >= (MAX_SLEEPING_S if is_asleep else MAX_PAUSE_S)
            or ATTACHED in function.member.notes
        )
        if has_waited and _is_stuck(function):
            yield _claim(view, function, rpc_wait.callers)


def _is_stuck(function: RpcFunction) -> bool:
    """Return True if the function is idle, or spins in the user's own code: one that computes inside of a
    library is at work."""
    if not is_settled_stack(function.stack):
        return False
    if _is_idle(function):
        return True
    enough_samples = function.stack.samples >= MIN_BUSY_SAMPLES
    return (
        function.stack.frames[0].is_user
        and enough_samples
        and function.stack.span >= MIN_BUSY_SPAN_S
    )


def _is_idle(function: RpcFunction) -> bool:
    """Return True if the function computes nothing. Threads of RPC itself poll, with a tenth of a core or
    more (torch 2.13): a function that sleeps or waits for a lock is idle whatever CPU its process uses."""
    return function.member.cpu < IDLE_CORES or classify_stack(function.stack) in (
        Spot.SLEEP,
        Spot.LOCK,
        Spot.INPUT,
    )


def _claim(view: JobView, function: RpcFunction, callers: tuple[Member, ...]) -> Claim:
    member, stack = function.member, function.stack
    frame = stack.main_frame
    busy = not _is_idle(function)
    activity = (
        f"stays at {frame} with its CPU busy" if busy else f"{_describe(function)} at {frame}"
    )
    example = callers[0].stack
    caller_frame = example.user if example is not None else None
    place = f" at {caller_frame}" if caller_frame is not None else ""
    verb = conjugate_verb("wait", callers)
    return Claim(
        summary=f"{member.who.name} {activity}, in a function that it runs for a call of RPC; "
        f"{name_by_rank(callers)} {verb} for an answer",
        who=(member.who,),
        evidence=(
            Evidence(
                f"there in {stack.samples} samples over {stack.span:.1f} s, "
                + f"its process used {member.cpu * 100:.0f} % of a core",
                stack.by,
            ),
            Evidence(f"{name_by_rank(callers)} {verb} for RPC{place}", "stacks"),
            Evidence(frame.text or "source not readable", f"{frame.file}:{frame.line}"),
        ),
        fix=command_on_host(view, member, f"py-spy dump --locals --pid {member.who.pid}")
        + f"   # then {frame.file}:{frame.line}",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


def _describe(function: RpcFunction) -> str:
    text = describe_wait(function.stack)
    return "is stuck" if text == "in its own code" else f"is {text}"


_API = "/v/lib/python3.11/site-packages/torch/distributed/rpc/api.py"
_SYNC = Frame(_API, 842, "rpc_sync")
_ASYNC = Frame("/home/u/train.py", 37, "train", 'rpc.rpc_async("w1", score).wait()')
_LATER = Frame("/home/u/train.py", 37, "train", "states, done = game.wait()")
_NESTED = Frame("/home/u/train.py", 18, "relay", 'return rpc.rpc_sync("w2", score)')
_WAIT = Frame("/usr/lib/python3.11/threading.py", 327, "wait")
_SHUTDOWN = sample_stack(_WAIT, Frame(_API, 382, "shutdown"), USER)
_SLEEP = Frame("/home/u/train.py", 14, "score", "time.sleep(10_000)")
_SPIN = Frame("/home/u/train.py", 17, "score", "batch = batch + 1")
_LOCKED = Frame("/home/u/train.py", 20, "score", "lock.acquire()")
_NUMPY = Frame("/v/lib/python3.11/site-packages/numpy/linalg/linalg.py", 9, "svd")
_LONG = {"progress_at": 30.0}
_SLEPT = {"progress_at": -230.0}


def _caller(*frames: Frame) -> Member:
    return sample_member(0, stack=sample_stack(*frames), cpu=0.0)


def _callee(*frames: Frame, rank: int = 1, **changes: object) -> Member:
    functions = (frames,) if frames else ()
    stack = msgspec.structs.replace(_SHUTDOWN, rpc_functions=functions)
    return sample_member(rank, **({"stack": stack, "cpu": 0.0} | changes))


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "a worker sleeps in a function that rpc_sync called": (
            stalled_job(_caller(_SYNC, USER), _callee(_SLEEP), **_SLEPT),
            "worker 1 is asleep at train.py:14 in score, in a function that it runs for a call of RPC; "
            "rank 0 waits for an answer",
        ),
        "a worker waits for a lock in a function that rpc_async called": (
            stalled_job(_caller(_ASYNC), _callee(_LOCKED), **_LONG),
            "worker 1 is waiting for a lock at train.py:20 in score, in a function that it runs for a call "
            "of RPC; rank 0 waits for an answer",
        ),
        "a worker spins in a function whose future its caller waits for": (
            stalled_job(_caller(_LATER), _callee(_SPIN, cpu=1.0), **_LONG),
            "worker 1 stays at train.py:17 in score with its CPU busy, in a function that it runs for a call "
            "of RPC; rank 0 waits for an answer",
        ),
        "the function sleeps while threads of RPC poll": (
            stalled_job(_caller(_SYNC, USER), _callee(_SLEEP, cpu=0.4), **_SLEPT),
            "worker 1 is asleep at train.py:14 in score, in a function that it runs for a call of RPC; "
            "rank 0 waits for an answer",
        ),
        "a function waits for another one, which is stuck": (
            stalled_job(
                _caller(_SYNC, USER), _callee(_SYNC, _NESTED), _callee(_SLEEP, rank=2), **_SLEPT
            ),
            "worker 2 is asleep at train.py:14 in score, in a function that it runs for a call of RPC; "
            "rank 0 waits for an answer",
        ),
        "somebody diagnoses the processes": (
            stalled_job(_caller(_SYNC, USER), _callee(_SLEEP, notes={ATTACHED: "1"})),
            "worker 1 is asleep at train.py:14 in score, in a function that it runs for a call of RPC; "
            "rank 0 waits for an answer",
        ),
    },
    silent_on={
        "it has taken only a few seconds": stalled_job(_caller(_SYNC, USER), _callee(_SLEEP)),
        "the function computes inside of a library": stalled_job(
            _caller(_SYNC, USER), _callee(_NUMPY, _SPIN, cpu=1.0), **_LONG
        ),
        "the function sleeps, and may pace itself": stalled_job(
            _caller(_SYNC, USER), _callee(_SLEEP), **_LONG
        ),
        "the function reads or writes": stalled_job(
            _caller(_SYNC, USER), _callee(_SLEEP, io=1e6), **_SLEPT
        ),
        "the function was seen elsewhere, so no place of it was kept": stalled_job(
            _caller(_SYNC, USER), _callee(), **_LONG
        ),
        "nobody waits for RPC": stalled_job(
            sample_member(0, stack=sample_stack(USER), cpu=1.0), _callee(_SLEEP), **_SLEPT
        ),
        "both are in rpc.shutdown": stalled_job(
            sample_member(0, stack=_SHUTDOWN, cpu=0.0), _callee(), **_LONG
        ),
        "the worker is stopped, which HANG001 reports": stalled_job(
            _caller(_SYNC, USER), _callee(_SLEEP, os_state="T", os_state_since=90.0), **_SLEPT
        ),
    },
    unstaged="tests/diagnosis/test_rpc_function.py starts a job of RPC whose function does not return",
)
