"""Who waits for RPC, whom the status line names, and who is not blamed for it."""

from __future__ import annotations

import msgspec

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.expected_pauses import pause_line
from allaboard.analysis.stalls.rpc_calls import find_rpc_wait
from allaboard.facts import Frame, JobView, Member
from allaboard.facts.samples import USER, sample_member, sample_stack, stalled_job, waiting_member
from allaboard.rules import hang005_not_in_the_collective as hang005

API = "/v/lib/python3.11/site-packages/torch/distributed/rpc/api.py"
SYNC = Frame(API, 842, "rpc_sync")
LATER = Frame("/home/u/train.py", 37, "train", "states, done = game.wait()")
WAIT = Frame("/usr/lib/python3.11/threading.py", 327, "wait")
EVENT = Frame("/usr/lib/python3.11/threading.py", 629, "wait")
SHUTDOWN = sample_stack(WAIT, EVENT, Frame(API, 382, "shutdown"), USER)
SLEEP = Frame("/home/u/train.py", 14, "score", "time.sleep(10_000)")


def caller(*frames: Frame) -> Member:
    return sample_member(0, stack=sample_stack(*frames), cpu=0.0)


def callee(*frames: Frame) -> Member:
    functions = (frames,) if frames else ()
    stack = msgspec.structs.replace(SHUTDOWN, rpc_functions=functions)
    return sample_member(1, stack=stack, cpu=0.0)


def blamed(view: JobView) -> list[str]:
    return [w.name for claim in hang005.check(view) for w in claim.who]


def test_the_status_line_names_the_worker_and_the_line_of_the_function() -> None:
    told = "waiting: rank 0 waits for a function that rank 1 runs by RPC (train.py:14 in score)"
    assert pause_line(stalled_job(caller(SYNC, USER), callee(SLEEP))) == told
    assert pause_line(stalled_job(caller(LATER), callee(SLEEP))) == told


def test_without_a_function_that_stands_the_caller_is_named() -> None:
    line = pause_line(stalled_job(caller(SYNC, USER), callee()))
    assert line == "waiting: rank 0 waits for the answer of another process (train.py:41 in train)"


def test_a_main_thread_in_shutdown_is_not_blamed_for_the_wait_for_a_future() -> None:
    assert blamed(stalled_job(caller(LATER), callee(SLEEP))) == []
    assert blamed(stalled_job(caller(LATER), callee(), progress_at=30.0)) == []


def test_it_is_blamed_where_the_others_are_in_a_collective() -> None:
    view = stalled_job(waiting_member(0), callee(), waiting_member(2))
    assert find_rpc_wait(view) is None and blamed(view) == ["worker 1"]


def test_all_in_shutdown_wait_for_no_function() -> None:
    assert find_rpc_wait(stalled_job(sample_member(0, stack=SHUTDOWN), callee(SLEEP))) is None


def test_an_answer_of_rpc_async_is_no_collective() -> None:
    line = Frame("/home/u/train.py", 37, "train", 'rpc.rpc_async("w1", score, (x,)).wait()')
    assert classify_stack(sample_stack(line)) is Spot.ANSWER
