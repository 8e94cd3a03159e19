"""What to do about a process that stands at a lock which it has inherited by fork."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.analysis.stalls.child_process import advise_forked
from allaboard.facts import Frame
from allaboard.facts.samples import USER, sample_member, sample_stack


@pytest.mark.parametrize(
    ("text", "is_lock"),
    [("with stats_lock:", True), ("self.lock.acquire()", True), ("row = read(path)", False)],
)
def test_a_process_at_a_lock_is_to_be_started_by_spawn(text: str, is_lock: bool) -> None:
    loader = (4711, Frame("/home/u/data.py", 9, "read", text))
    stack = msgspec.structs.replace(sample_stack(USER), loaders=(loader,))
    assert ("spawn" in advise_forked(sample_member(1, stack=stack))) is is_lock
    assert advise_forked(sample_member(1, stack=sample_stack(USER))) == ""


def test_a_process_that_waits_for_a_thread_it_lacks_is_to_be_started_by_spawn() -> None:
    child = (4711, Frame("/home/u/data.py", 9, "read", "w = w @ w.T"))
    stack = msgspec.structs.replace(sample_stack(USER), loaders=(child,), lone_waiters=(4711,))
    assert "start process 4711 by spawn" in advise_forked(sample_member(1, stack=stack))
    several = msgspec.structs.replace(stack, lone_waiters=())
    assert advise_forked(sample_member(1, stack=several)) == ""
