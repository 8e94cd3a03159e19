"""All functions that run for calls of PyTorch's RPC wait for answers of RPC themselves.

## Why it matters
A function that calls another worker and waits keeps one of RPC's threads of its process
(`num_worker_threads`, 16 by default). If functions call each other in a circle, or call back the worker that
called them, all of these threads can end up waiting: the call that would free them finds no thread, and with
a timeout of 0 they wait for ever.

## What to do
- Do not wait inside of a function that runs for a call: return the future
  (`@rpc.functions.async_execution`, with `rpc_async(...).then(...)`), so that no thread is kept.
- Raise `num_worker_threads` in `TensorPipeRpcBackendOptions` above the number of calls that may wait at once.
- Give each call a timeout (`rpc.rpc_sync(..., timeout=60)`), which shows the call that had no answer.

A call does not tell which worker it went to, so that the circle itself cannot be shown: all functions that
wait are named. One that computes, sleeps or waits for anything else is reported by HANG030 instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from allaboard.analysis.member_names import name_by_rank
from allaboard.analysis.stalls.expected_pauses import MAX_PAUSE_S
from allaboard.analysis.stalls.rpc_calls import RpcFunction, RpcWait, find_rpc_wait
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import ATTACHED, Certainty, Claim, Evidence, Frame, JobView, Member, Severity
from allaboard.facts.samples import USER, sample_member, sample_stack, stalled_job

MAX_SHOWN_PLACES = 4
"""Places of functions, and callers, that are shown as evidence."""


def check(view: JobView) -> Iterator[Claim]:
    rpc_wait = find_rpc_wait(view)
    if rpc_wait is None or not rpc_wait.waiting_functions:
        return
    is_attached = any(ATTACHED in f.member.notes for f in rpc_wait.waiting_functions)
    if is_attached or view.now - stalled_since(view) >= MAX_PAUSE_S:
        yield _claim(view, rpc_wait)


def _claim(view: JobView, rpc_wait: RpcWait) -> Claim:
    functions = rpc_wait.waiting_functions
    members = {f.member.event_key: f.member for f in functions}
    frame = functions[0].stack.main_frame
    by_place: dict[Frame, list[RpcFunction]] = {}
    for function in functions:
        by_place.setdefault(function.stack.main_frame, []).append(function)
    others = f" and {len(by_place) - 1} more places" if len(by_place) > 1 else ""
    what = (
        f"all {len(functions)} functions that run for calls of RPC wait for answers of RPC themselves"
        if len(functions) > 1
        else "the only function that runs for a call of RPC waits for an answer of RPC itself"
    )
    return Claim(
        summary=f"{what}, at {frame}{others}, and no worker does anything else",
        who=tuple(m.who for m in members.values()),
        evidence=(
            *(
                _place_evidence(place, standing)
                for place, standing in list(by_place.items())[:MAX_SHOWN_PLACES]
            ),
            *(_caller_evidence(c) for c in rpc_wait.callers[:MAX_SHOWN_PLACES]),
        ),
        fix="let these functions return a future (@rpc.functions.async_execution) and not wait, or raise "
        "num_worker_threads in TensorPipeRpcBackendOptions above the calls that wait at once",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


def _place_evidence(frame: Frame, functions: list[RpcFunction]) -> Evidence:
    counts = Counter(f.member.who.name for f in functions)
    workers = ", ".join(f"{name} ×{n}" if n > 1 else name for name, n in counts.items())
    return Evidence(
        f"{frame.function}, run by {workers}: {frame.text or 'a wait for RPC'}",
        f"{frame.file}:{frame.line}",
    )


def _caller_evidence(caller: Member) -> Evidence:
    frame = caller.stack.user if caller.stack is not None else None
    place = f" at {frame}" if frame is not None else ""
    return Evidence(f"{name_by_rank([caller])} waits for an answer{place}", "stacks")


_API = "/v/lib/python3.11/site-packages/torch/distributed/rpc/api.py"
_SYNC = Frame(_API, 842, "rpc_sync")
_BACK = Frame("/home/u/train.py", 18, "ask_back", "return rpc.rpc_sync(who, own_value)")
_FUTURE = Frame("/home/u/train.py", 21, "relay", "return future.wait()")
_SLEEP = Frame("/home/u/train.py", 14, "score", "time.sleep(10_000)")
_SHUTDOWN = (
    Frame("/usr/lib/python3.11/threading.py", 327, "wait"),
    Frame(_API, 382, "shutdown"),
    USER,
)
_LONG = {"progress_at": 30.0}
_HERE = {ATTACHED: "1"}


def _worker(
    rank: int,
    *functions: tuple[Frame, ...],
    main: tuple[Frame, ...] = (_SYNC, USER),
    moving: int = 0,
    polling: float = 0.0,
    **changes: object,
) -> Member:
    stack = msgspec.structs.replace(
        sample_stack(*main),
        rpc_functions=functions,
        moving_rpc_functions=moving,
        polling_cores=polling,
    )
    return sample_member(rank, **({"stack": stack, "cpu": 0.0} | changes))


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "two workers with one thread each call each other back": (
            stalled_job(
                _worker(0, (_SYNC, _BACK), polling=0.93, cpu=0.95),
                _worker(1, (_SYNC, _BACK), polling=0.2, cpu=0.3),
                **_LONG,
            ),
            "all 2 functions that run for calls of RPC wait for answers of RPC themselves, at train.py:18 in "
            "ask_back, and no worker does anything else",
        ),
        "functions of three workers wait for futures in a ring, as somebody diagnoses them": (
            stalled_job(
                _worker(0, (_FUTURE,), notes=_HERE),
                *(_worker(r, (_FUTURE,), main=_SHUTDOWN, notes=_HERE) for r in (1, 2)),
            ),
            "all 3 functions that run for calls of RPC wait for answers of RPC themselves, at train.py:21 in "
            "relay, and no worker does anything else",
        ),
        "a worker calls itself back, and its only thread is taken": (
            stalled_job(_worker(0), _worker(1, (_SYNC, _BACK), main=_SHUTDOWN), **_LONG),
            "the only function that runs for a call of RPC waits for an answer of RPC itself, at train.py:18 "
            "in ask_back, and no worker does anything else",
        ),
    },
    silent_on={
        "one of the functions sleeps, which HANG030 reports": stalled_job(
            _worker(0, (_SYNC, _BACK)), _worker(1, (_SLEEP,)), **_LONG
        ),
        "a function of another worker was seen at several places": stalled_job(
            _worker(0, (_SYNC, _BACK)), _worker(1, moving=1), **_LONG
        ),
        "native code computes the answer": stalled_job(
            _worker(0, (_SYNC, _BACK)), _worker(1, main=_SHUTDOWN, cpu=0.95), **_LONG
        ),
        "native code computes the answer beside a thread that polls": stalled_job(
            _worker(0, (_SYNC, _BACK), polling=0.9, cpu=1.8), _worker(1, (_SYNC, _BACK)), **_LONG
        ),
        "the answer is on its way": stalled_job(
            _worker(0, (_SYNC, _BACK)), _worker(1, main=_SHUTDOWN, traffic=3e6), **_LONG
        ),
        "they have waited for a few seconds": stalled_job(
            _worker(0, (_SYNC, _BACK)), _worker(1, (_SYNC, _BACK))
        ),
        "the main thread of a worker computes": stalled_job(
            _worker(0, (_SYNC, _BACK)), _worker(1, main=(USER,), cpu=1.0), **_LONG
        ),
    },
    unstaged="tests/diagnosis/test_rpc_function.py starts a job of RPC whose functions wait for each other",
)
