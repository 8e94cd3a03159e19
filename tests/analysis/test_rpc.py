"""The roll call of PyTorch's RPC, alone and beside that of a process group."""

from __future__ import annotations

from typing import Any

from allaboard.analysis.roll_call.roll_call import find_roll_calls
from allaboard.coordinator.gate import Gate
from allaboard.coordinator.multi_host_state import MultiHostState
from allaboard.facts import JobView, Member
from allaboard.facts.samples import (
    arrived_member,
    coming_member,
    gathering_job,
    sample_declaration,
    sample_member,
    stalled_job,
)
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.policy.end.verdict import end_verdict
from allaboard.protocol.commands import OpenGate, ShowNote

TRAINERS = "tcp://127.0.0.1:29500"


def rpc(rank: int, size: int = 4, **changes: Any) -> Member:
    """One that stands in init_rpc."""
    return arrived_member(rank, declared=sample_declaration(rank, size, call="init_rpc"), **changes)


def trainer(rank: int, **changes: Any) -> Member:
    """One that stands in the init of a group of two."""
    return arrived_member(rank, declared=sample_declaration(rank, 2, place=TRAINERS), **changes)


def opened(view: JobView) -> tuple[list[int], Gate, list[str]]:
    gate = Gate(0.0, EndPolicy(), MultiHostState("a", joined=False), {})
    done = list(gate.open_when_complete(view.now, find_roll_calls(view), []))
    through = [c for c in done if isinstance(c, OpenGate)]
    return (
        sorted(c.pid - 100 for c in through),
        gate,
        [c.text for c in done if isinstance(c, ShowNote)],
    )


def test_alone_it_is_a_roll_call_like_others() -> None:
    (roll,) = find_roll_calls(gathering_job(rpc(0), rpc(1), coming_member(3), launched=4))
    assert roll.missing == (2, 3) and [m.who.rank for m in roll.late] == [3]
    assert opened(gathering_job(rpc(0), rpc(1), launched=4))[0] == []
    through, gate, told = opened(gathering_job(*map(rpc, range(4)), launched=4))
    assert through == [0, 1, 2, 3] and gate.opened_at is not None
    assert told == ["all 4 ready after 100.0 s (init_rpc, tcp://127.0.0.1:20000)"]


def test_where_somebody_joins_a_group_nobody_is_held_for_rpc() -> None:
    view = gathering_job(trainer(0), coming_member(1), rpc(2), rpc(3), launched=4)
    through, gate, told = opened(view)
    assert through == [2, 3] and gate.opened_at is None and told == []
    (group,) = [r for r in find_roll_calls(view) if not r.is_rpc_only]
    assert group.size == 2 and group.missing == (1,) and list(group.members_by_size) == [2]
    through, gate, _ = opened(gathering_job(trainer(0), trainer(1), rpc(2), rpc(3), launched=4))
    assert through == [0, 1, 2, 3] and gate.opened_at is not None


def test_who_is_in_rpc_yet_may_come_to_the_group() -> None:
    others = [
        sample_member(r, declared=sample_declaration(r, 3, call="init_rpc"), step=0, ops=0)
        for r in (1, 2)
    ]
    (roll,) = find_roll_calls(gathering_job(arrived_member(0, 3, round=2), *others))
    assert [m.who.rank for m in roll.late] == [1, 2] and roll.unheard_ranks == ()


def test_silence_alone_never_ends_a_job_of_rpc() -> None:
    policy = EndPolicy(stop_on_hang=True, hang_after=5.0)

    def ended(call: str) -> bool:
        there = [sample_member(r, declared=sample_declaration(r, call=call)) for r in range(3)]
        view = stalled_job(*there, progress_at=50.0)
        return end_verdict(view, find_roll_calls(view), [], policy) is not None

    assert ended("init_process_group") and not ended("init_rpc")
