"""Two worlds of ranks under one command: who waits for whom, and who is not to blame."""

from __future__ import annotations

import msgspec

from allaboard.analysis.stalls.stall import find_stall
from allaboard.coordinator.world_waits import find_world_waits
from allaboard.facts import Frame, JobView, Member
from allaboard.facts.samples import (
    USER,
    sample_declaration,
    sample_member,
    sample_stack,
    stalled_job,
    waiting_member,
)

RECEIVES = sample_stack(Frame("/home/u/rollout.py", 16, "receive", "return conn.recv(13)"))
SLEEPS = sample_stack(Frame("/home/u/trainer.py", 9, "hang", "time.sleep(10000)"), USER)
FROM_TRAINER = msgspec.structs.replace(RECEIVES, awaited_pids=(100,))


def at(place: str, member: Member, pid: int) -> Member:
    """The member as one that met its peers at this place."""
    declared = msgspec.structs.replace(sample_declaration(member.who.rank, 2), place=place)
    who = msgspec.structs.replace(member.who, pid=pid)
    return msgspec.structs.replace(member, who=who, declared=declared)


def trainer(member: Member) -> Member:
    return at("tcp://127.0.0.1:29500", member, 100 + member.who.rank)


def rollout(member: Member) -> Member:
    return at("tcp://127.0.0.1:29600", member, 200 + member.who.rank)


ROLLOUT = (rollout(sample_member(0, stack=FROM_TRAINER)), rollout(waiting_member(1)))


def stalled(*members: Member) -> JobView:
    return stalled_job(*members, world_waits=find_world_waits(members))


def test_a_rollout_waits_for_its_trainer() -> None:
    (wait,) = find_world_waits((trainer(sample_member(0)), trainer(sample_member(1)), *ROLLOUT))
    assert (wait.waiter.pid, wait.holder.pid) == (200, 100)
    assert wait.waiter_world == "the world at 127.0.0.1:29600"
    assert wait.waiter_place == "rollout.py:16 in receive"


def test_a_peer_of_the_own_world_is_no_other_world() -> None:
    """Nor is one that knows the same place by another name: no rank is there twice."""
    waits = rollout(sample_member(1, stack=FROM_TRAINER))
    assert find_world_waits((at("tcp://127.0.0.1:29600", sample_member(0), 100), waits)) == ()
    assert find_world_waits((at("tcp://localhost:29600", sample_member(0), 100), waits)) == ()


def test_a_wait_for_another_world_is_no_stall_of_this_one() -> None:
    busy = sample_member(0, stack=sample_stack(USER, moving=True), cpu=0.9)
    assert find_stall(stalled(trainer(busy), *ROLLOUT)) is None
    both_wait = stalled(trainer(waiting_member(0)), trainer(waiting_member(1)), *ROLLOUT)
    stall = find_stall(both_wait)
    assert stall is not None and [m.who.pid for m in stall.waiting] == [100, 101]
    alone = stalled_job(*ROLLOUT)
    stall = find_stall(alone)
    assert stall is not None and [m.who.pid for m in stall.absent] == [200]


def test_only_peers_of_the_same_world_are_waited_for() -> None:
    view = stalled(trainer(waiting_member(0)), trainer(sample_member(1, stack=SLEEPS)), *ROLLOUT)
    stall = find_stall(view)
    assert stall is not None
    assert [m.who.pid for m in stall.absent] == [101]
    assert [m.who.pid for m in stall.waiting] == [100]
