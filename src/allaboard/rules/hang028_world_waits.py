"""One world of ranks waits for a process of another world, which stands still.

Reinforcement learning often runs several worlds side by side: a trainer's ranks, and ranks that generate
(rollout, inference). Each has its own ranks and its own meeting place, and one waits for messages of the
other: weights, batches, answers.

## Why it matters
No framework knows both worlds. The one that waits reports a timeout, or nothing; the cause is in the other.

## What to do
Look at the line where the named process stands. A world that waits while the other one computes is healthy,
and not reported.

If both wait for each other, one of them expects a message that the other has not sent: compare the numbers of
messages in both loops, and what each does first.

Who holds the other end of a connection is taken from the sockets, Unix sockets and pipes of the processes. A
process that waits in a library's own thread (gRPC, ZeroMQ) shows no such end, and is not reported.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.member_names import command_on_host
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.lock_kind import describe_wait
from allaboard.analysis.stalls.stall import IDLE_CORES, find_stall, is_still
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Severity, Who, WorldWait
from allaboard.facts.member import Member
from allaboard.facts.samples import USER, sample_member, sample_stack, stalled_job, waiting_member

_STANDING = (Spot.SLEEP, Spot.LOCK, Spot.INPUT, Spot.DEBUGGER, Spot.CHILD, Spot.USER)
"""Places at which an idle process does not send what the other world waits for."""


def check(view: JobView) -> Iterator[Claim]:
    stall = find_stall(view)
    if view.ending or (stall is not None and stall.waiting):
        return  # whoever its own peers wait for is the one to name
    waiting_keys = {w.waiter_key for w in view.world_waits}
    for wait in view.world_waits:
        member = next((m for m in view.alive if m.event_key == wait.holder_key), None)
        if member is None or member.is_stopped or not is_still(member) or member.cpu >= IDLE_CORES:
            continue
        if not view.stalled and view.now - member.moved_at < view.stall_after:
            continue
        back = _wait_back(view, wait)
        if back is not None and wait.holder_key < wait.waiter_key:
            yield _claim_mutual(view, member, wait, back)
        elif (
            back is None
            and not wait.is_store
            and member.event_key not in waiting_keys
            and classify_stack(member.stack) in _STANDING
        ):
            yield _claim(view, member, wait)


def _wait_back(view: JobView, wait: WorldWait) -> WorldWait | None:
    """Return the wait of the holder for the waiter, without a store between them."""
    return next(
        (
            w
            for w in view.world_waits
            if (w.waiter_key, w.holder_key) == (wait.holder_key, wait.waiter_key)
            and not (w.is_store or wait.is_store)
        ),
        None,
    )


def _claim(view: JobView, member: Member, wait: WorldWait) -> Claim:
    assert member.stack is not None
    frame = member.stack.main_frame
    return Claim(
        summary=f"{member.who.name} is {describe_wait(member.stack)} at {frame}; {wait.waiter_world} waits "
        "for it",
        who=(member.who,),
        evidence=(
            Evidence(f"idle there for at least {member.stack.span:.1f} s", member.stack.by),
            _wait_evidence(wait),
            Evidence(frame.text or str(member.stack.frames[0]), f"{frame.file}:{frame.line}"),
        ),
        fix=command_on_host(view, member, f"py-spy dump --pid {member.who.pid}")
        + f"   # then {frame.file}:{frame.line}",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


def _claim_mutual(view: JobView, member: Member, wait: WorldWait, back: WorldWait) -> Claim:
    return Claim(
        summary=f"{member.who.name} and {_rank_of(wait.waiter)} of {wait.waiter_world} wait for each other's "
        "message",
        who=(member.who, wait.waiter),
        evidence=(_wait_evidence(wait), _wait_evidence(back)),
        fix=f"compare what both send and receive, and in which order: {back.waiter_place or 'its line'} and "
        f"{wait.waiter_place or 'the line of the other'}",
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


def _wait_evidence(wait: WorldWait) -> Evidence:
    line = f" at {wait.waiter_place}" if wait.waiter_place else ""
    return Evidence(
        f"{_rank_of(wait.waiter)} of {wait.waiter_world} (pid {wait.waiter.pid}) waits{line} for "
        f"{_rank_of(wait.holder)} of {wait.holder_world} (pid {wait.holder.pid})",
        wait.through,
    )


def _rank_of(who: Who) -> str:
    return f"rank {who.rank}" if who.rank >= 0 else who.name


_SLEEP = Frame("/home/u/trainer.py", 33, "prepare", "time.sleep(3600)")
_RECEIVES = Frame("/home/u/trainer.py", 40, "take_rollouts", "data = peer.recv(4096)")
_SLEEPER = sample_member(0, stack=sample_stack(_SLEEP, USER), cpu=0.0)
_OTHER = Who(index=0, rank=0, host="a", pid=900)
_WAIT = WorldWait(
    waiter=_OTHER,
    waiter_key=900,
    waiter_world="rollout.py",
    waiter_place="rollout.py:16 in receive_weights",
    holder=_SLEEPER.who,
    holder_key=_SLEEPER.event_key,
    holder_world="trainer.py",
    through="a connection (127.0.0.1:40000 to 127.0.0.1:5000)",
)
_BACK = msgspec.structs.replace(
    _WAIT,
    waiter=_SLEEPER.who,
    waiter_key=_SLEEPER.event_key,
    waiter_world="trainer.py",
    waiter_place="trainer.py:40 in take_rollouts",
    holder=_OTHER,
    holder_key=900,
    holder_world="rollout.py",
)
_RECEIVER = sample_member(0, stack=sample_stack(_RECEIVES, USER), cpu=0.0)
RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "the trainer sleeps, and the rollout process waits for its weights": (
            stalled_job(_SLEEPER, world_waits=(_WAIT,)),
            "worker 0 is asleep at trainer.py:33 in prepare; rollout.py waits for it",
        ),
        "the trainer and the rollout process each wait to receive from the other": (
            stalled_job(_RECEIVER, world_waits=(_WAIT, _BACK)),
            "worker 0 and rank 0 of rollout.py wait for each other's message",
        ),
    },
    silent_on={
        "the trainer computes": stalled_job(
            sample_member(0, stack=sample_stack(USER, moving=True), cpu=0.9), world_waits=(_WAIT,)
        ),
        "the trainer's own peers wait for it, too, which HANG005 reports": stalled_job(
            _SLEEPER, waiting_member(1), waiting_member(2), world_waits=(_WAIT,)
        ),
        "the trainer's ranks wait in a collective": stalled_job(
            waiting_member(0), waiting_member(1), world_waits=(_WAIT,)
        ),
        "the trainer itself waits for a third process": stalled_job(
            _RECEIVER, world_waits=(_WAIT, msgspec.structs.replace(_BACK, holder_key=901))
        ),
        "the trainer serves the store in which the rollout process waits for a key": stalled_job(
            _SLEEPER, world_waits=(msgspec.structs.replace(_WAIT, is_store=True),)
        ),
        "the trainer sleeps, and no other process waits for it": stalled_job(_SLEEPER),
    },
    passes=True,
    unstaged="a drill has one job; tests/diagnosis/test_worlds.py stages two worlds of real processes",
)
