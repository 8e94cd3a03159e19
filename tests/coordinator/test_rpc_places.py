"""A function of RPC is kept only while it stays at one place."""

from __future__ import annotations

from allaboard.coordinator.process_record import ProcessRecord
from allaboard.facts import Frame
from allaboard.facts.samples import USER
from allaboard.protocol.events import ProcessSampled, StackSampled

SLEEPS = Frame("/home/u/train.py", 14, "score", "time.sleep(10_000)")
NEXT_LINE = Frame("/home/u/train.py", 15, "score", "batch = batch + 1")
ELSEWHERE = Frame("/home/u/train.py", 30, "play", "move()")


def kept(*functions: tuple[tuple[Frame, ...], ...]) -> tuple[tuple[Frame, ...], ...]:
    record = ProcessRecord(100, 0, "a", 0.0)
    record.add_sample(ProcessSampled(pid=100, worker=0, sampled_at=0.0, state="S", cpu=0.0))
    for at, sampled in enumerate(functions):
        sample = StackSampled(
            pid=100, sampled_at=at, frames=(USER,), by="py-spy", rpc_functions=sampled
        )
        record.add_stack(sample)
    stack = record.to_member(False).stack
    assert stack is not None
    return stack.rpc_functions


def test_lines_of_one_loop_are_one_place() -> None:
    assert kept(((SLEEPS,),), ((NEXT_LINE,),), ((SLEEPS,),)) == ((SLEEPS,),)


def test_one_that_was_elsewhere_is_not_kept() -> None:
    assert kept(((ELSEWHERE,),), ((SLEEPS,),)) == ()
    assert kept(((ELSEWHERE, SLEEPS),), ((SLEEPS,),)) == ()
    assert kept((), ((SLEEPS,),)) == ()


def test_each_function_counts_by_itself() -> None:
    assert kept(((SLEEPS,), (ELSEWHERE,)), ((ELSEWHERE,),)) == ((ELSEWHERE,),)
