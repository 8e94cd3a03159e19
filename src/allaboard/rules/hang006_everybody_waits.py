"""All workers wait for each other in collectives, and none makes progress.

## Why it matters
All are inside collectives, but none completes. Either they are in different collectives (one rank calls them
in another order), or the shapes differ, or a link between them is lost. Stacks alone cannot show which.

## What to do
Compare the places that the finding lists.

- If they differ, look for a collective that only some ranks call, or call in another order. For a `recv` or
  `send`, look for the other side, which must name this rank and use the same tag.
- If they are the same, suspect the network between the hosts, a message whose shape differs between
  ranks, or an earlier call that one rank skipped or repeated: since then it meets other calls than its own.
- If they have joined a second time, at the same port, give each init a port of its own: the earlier store may
  still be open, and the ranks find the earlier addresses in it.
- If one of them is in a collective that DDP, SyncBatchNorm, FSDP or ZeRO calls by itself, only some ranks run
  the model: let all run it, or call `model.module(...)` where one rank runs a DDP model alone.
- If one of them waits in a thread other than the main one, that thread needs a group of its own: in a shared
  group, each rank may run the calls of two threads in a different order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import PurePath

import msgspec

from allaboard.analysis.collectives.implicit_call import destructor_call_advice
from allaboard.analysis.collectives.left_loop import LEFT_LOOP_ADVICE, left_loop_clause
from allaboard.analysis.collectives.mutual_wait_advice import advise_jax_step, advise_new_group
from allaboard.analysis.collectives.point_to_point import parse_message
from allaboard.analysis.member_names import name_by_rank
from allaboard.analysis.roll_call.reinit import (
    OWN_PORT_ADVICE,
    may_meet_earlier_store,
    reinit_evidence,
)
from allaboard.analysis.stacks.framework_collectives import find_own_collective
from allaboard.analysis.stacks.program_files import program_advice, program_evidence
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stacks.stack_collectives import describe_stack_collective
from allaboard.analysis.stalls.awaited_end import awaited_end_advice, awaited_end_evidence
from allaboard.analysis.stalls.mutual_wait import (
    MAX_NAMED_RANKS,
    MutualWait,
    describe_position,
    find_mutual_wait,
    name_waiting_ranks,
    waiting_hosts,
)
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, EnclosingLoop, Evidence, Frame, JobView, Member, Op
from allaboard.facts.samples import (
    REDUCE,
    USER,
    ended_member,
    member_with_calls,
    sample_job,
    sample_member,
    sample_signature,
    sample_stack,
    stalled_job,
    waiting_member,
)
from allaboard.facts.samples.group_waits import (
    job_waiting_for_peers,
    member_in_group_call,
    member_waiting_for_peer,
)

RECEIVES, SENDS = {"recv", "recv_object_list"}, {"send", "send_object_list"}
STARTED_MESSAGE_PREFIX = "Work.wait for "
"""Prefix of the wait for a message that has already been started: its own side was not skipped."""


def check(view: JobView) -> Iterator[Claim]:
    if view.leader_loss is not None and view.leader_loss.is_confirmed:
        return  # they may all wait for a member that cannot be seen any more
    mutual_wait = find_mutual_wait(view)
    if mutual_wait is not None and not any(
        (
            mutual_wait.two_threaded,
            mutual_wait.lost_thread,
            mutual_wait.message_knot,
            mutual_wait.group_cycle,
        )
    ):
        yield _claim(view, mutual_wait)


def _claim(view: JobView, mutual_wait: MutualWait) -> Claim:
    places: dict[str, list[Member]] = defaultdict(list)
    members_by_position: dict[str, list[Member]] = defaultdict(list)
    for blocked_member in mutual_wait.waiting:
        places[describe_position(blocked_member, _call_name(blocked_member))].append(blocked_member)
        members_by_position[describe_position(blocked_member)].append(blocked_member)
    differ = len(places) > 1
    groups = sorted(places.values(), key=len)
    # Name the members at the rarest place, or all if no place is rarer than the others.
    outliers = (
        groups[0] if differ and len(groups[0]) < len(groups[1]) else list(mutual_wait.waiting)
    )
    positions = (
        f"{len(places)} different places" if differ else next(iter(places)).removeprefix("in ")
    )
    again = may_meet_earlier_store(view, mutual_wait.waiting)
    clauses = (left_loop_clause(members, mutual_wait.waiting) for members in groups)
    loop_clause = next(filter(None, clauses), "")
    return Claim(
        summary=f"{name_waiting_ranks(view, mutual_wait.waiting)} wait for each other in {positions}"
        + (f": {loop_clause}" if loop_clause else ""),
        who=tuple(m.who for m in outliers),
        evidence=tuple(
            Evidence(f"{name_by_rank(members)}: {positions}", "stacks")
            for positions, members in list(members_by_position.items())[:MAX_NAMED_RANKS]
        )
        + program_evidence(mutual_wait.waiting)
        + awaited_end_evidence(mutual_wait.waiting)
        + (reinit_evidence(view, mutual_wait.waiting) if again else ()),
        fix=OWN_PORT_ADVICE
        if again
        else LEFT_LOOP_ADVICE
        if loop_clause
        else _fix(mutual_wait, outliers if differ else ()),
        certainty=Certainty.LIKELY if differ else Certainty.UNKNOWN,
        since=stalled_since(view),
    )


def _fix(mutual_wait: MutualWait, outliers: Sequence[Member]) -> str:
    """Return advice that fits the calls in which they wait. ``outliers``: those at the rarest place, all if
    no place is rarer, () if all are at one."""
    calls = {_call_name(m) for m in mutual_wait.waiting}
    if calls <= RECEIVES:
        return (
            "all wait to receive and none sends: let one side send first, or use batch_isend_irecv"
        )
    if calls <= SENDS:
        return "all send and none receives: let one side receive first, or use batch_isend_irecv"
    in_messages = [
        m
        for m in mutual_wait.waiting
        if m.op is not None and (_call_name(m) in RECEIVES | SENDS or parse_message(m.op.name))
    ]
    if not in_messages and calls <= RECEIVES | SENDS:
        in_messages = list(mutual_wait.waiting)
    if in_messages:
        sides = ", ".join(
            f"rank {m.who.rank}'s {m.op.name if m.op is not None else _placed_call(m)}"
            for m in in_messages[:MAX_NAMED_RANKS]
        )
        return (
            f"look for the other side of {sides}: the two must name each other, with the same tag"
        )
    if any(m.op is not None and m.op.beside for m in mutual_wait.waiting):
        return (
            "give the thread that calls collectives besides the main thread a group of its own "
            "(dist.new_group): in a shared group, the order of two threads' calls can differ between ranks"
        )
    if outliers and (advice := _advice_on_own_collective(outliers, mutual_wait.waiting)):
        return advice
    if outliers and (advice := destructor_call_advice(outliers)):
        return advice
    if advice := advise_new_group(mutual_wait.waiting):
        return advice
    if advice := program_advice(mutual_wait.waiting):
        return advice
    if outliers:
        return "look for a collective that only some ranks call or call in another order"
    if advice := awaited_end_advice(mutual_wait.waiting):
        return advice
    if all(classify_stack(m.stack) is Spot.INIT for m in mutual_wait.waiting):
        return (
            "check that the ranks reach each other: the address and port of rank 0, the interface "
            "(GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME), and what lies between (ip link; nft list ruleset)"
        )
    if advice := advise_jax_step(mutual_wait.waiting):
        return advice
    network = (
        "check the network between the hosts, and "
        if len(waiting_hosts(mutual_wait.stall)) > 1
        else "check "
    )
    return (
        f"{network}that all ranks pass the same shape and dtype, and that none has skipped or repeated "
        "a call before this line"
    )


def _advice_on_own_collective(outliers: Sequence[Member], waiting: Sequence[Member]) -> str:
    """Return what to do about a collective that a framework calls by itself; "" if none of them is in one.

    That of the members at the rarest place counts. If no place is rarer, and members are in several, either
    may be the one that only some ranks call.
    """
    advice_at = _own_collectives(outliers) or _own_collectives(waiting)
    if len(advice_at) > 1:
        return f"compare {' with '.join(advice_at)}: all ranks must run both, in the same order"
    return next((f"{code_line}: {advice}" for code_line, advice in advice_at.items()), "")


def _own_collectives(members: Sequence[Member]) -> dict[str, str]:
    """Return the lines at which they are in a framework's own collective, each with what to do about it."""
    advice_at: dict[str, str] = {}
    for member in members:
        frames = member.stack.frames if member.stack is not None else ()
        own_collective = find_own_collective(frames)
        user = member.stack.user if member.stack is not None else None
        if own_collective is not None and user is not None:
            advice_at.setdefault(f"{user.file}:{user.line}", own_collective.advice)
    return advice_at


def _placed_call(member: Member) -> str:
    """Return the call that the stack shows, with its line, as "send (train.py:41)"."""
    user = member.stack.user if member.stack is not None else None
    return _call_name(member) + (f" ({PurePath(user.file).name}:{user.line})" if user else "")


def _call_name(member: Member) -> str:
    """Return the name of the call in which the member is, without the rank and tag of a message."""
    if member.op is None:
        return describe_stack_collective(member.stack).removeprefix("in ")
    name = member.op.name
    call = re.split("[ ,]", name.removeprefix(STARTED_MESSAGE_PREFIX), maxsplit=1)[0]
    return call if call in RECEIVES | SENDS or name.startswith(STARTED_MESSAGE_PREFIX) else name


_FORWARD = Frame(
    "/v/lib/python3.11/site-packages/torch/nn/parallel/distributed.py",
    2363,
    "_distributed_broadcast_coalesced",
)
_RECV = Frame("/v/site-packages/torch/distributed/distributed_c10d.py", 2764, "recv")
_SEND = Frame("/v/site-packages/torch/distributed/distributed_c10d.py", 2700, "send")
_NEW_GROUP = Frame("/v/site-packages/torch/distributed/distributed_c10d.py", 5100, "new_group")
_JITTED = Frame("/v/site-packages/jax/_src/interpreters/pxla.py", 395, "__call__")
_READS = Frame("/home/u/train.py", 52, "train", "value = np.asarray(loss.addressable_data(0))")
_BATCHES = EnclosingLoop(Frame("/home/u/train.py", 40, "train", "for batch in loader:"), 44)
_IN_LOOP = msgspec.structs.replace(sample_stack(REDUCE, USER), loops=(_BATCHES,))
_BEHIND_LOOP = sample_stack(REDUCE, Frame("/home/u/train.py", 46, "train", "dist.barrier()"))
RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "rank 1 has come to the barrier behind the loop over the batches, and rank 0 has one more": (
            stalled_job(
                waiting_member(0, stack=_IN_LOOP),
                waiting_member(1, op=Op("barrier", 41, 90.0), stack=_BEHIND_LOOP),
            ),
            "all 2 members wait for each other in 2 different places: rank 1 has left the loop at "
            "train.py:40 (for batch in loader), which rank 0 is still in",
        ),
        "rank 2 is in a broadcast, the others in an all_reduce": (
            stalled_job(
                waiting_member(0),
                waiting_member(1),
                waiting_member(2, op=Op("broadcast", 41, 90.0)),
            ),
            "all 3 members wait for each other in 2 different places",
        ),
        "both workers wait in an all_reduce at the same line": (
            stalled_job(waiting_member(0), waiting_member(1)),
            "all 2 members wait for each other in all_reduce at train.py:41 in train",
        ),
        "one rank of JAX reads a value, the other waits in `sync_global_devices`": (
            stalled_job(
                sample_member(0, framework="jax", stack=sample_stack(_READS)),
                waiting_member(1, framework="jax", op=Op("sync_global_devices", 41, 90.0)),
            ),
            "all 2 members wait for each other in 2 different places",
        ),
        "rank 0 alone runs the DDP model, as its stack shows": (
            stalled_job(
                waiting_member(0, op=None, stack=sample_stack(_FORWARD, USER)), waiting_member(1)
            ),
            "all 2 members wait for each other in 2 different places",
        ),
        "all workers wait in `all_gather_object`, and no bytes flow": (
            stalled_job(
                *(waiting_member(r, op=Op("all_gather_object", 41, 90.0)) for r in range(2))
            ),
            "all 2 members wait for each other in all_gather_object at train.py:41 in train",
        ),
        "the ranks create their groups in different orders, as their stacks show": (
            stalled_job(
                *(
                    waiting_member(r, op=None, stack=sample_stack(_NEW_GROUP, USER))
                    for r in range(3)
                )
            ),
            "all 3 members wait for each other in creating a process group at train.py:41 in train",
        ),
        "two processes of JAX made their meshes in different orders, and call their jitted step": (
            stalled_job(
                *(
                    sample_member(r, framework="jax", stack=sample_stack(_JITTED, USER))
                    for r in range(2)
                )
            ),
            "all 2 members wait for each other in a training step at train.py:41 in train",
        ),
        "both ranks wait in `recv`, and neither sends": (
            stalled_job(*(waiting_member(r, op=Op("recv", 41, 90.0)) for r in range(2))),
            "all 2 members wait for each other in recv at train.py:41 in train",
        ),
        "both ranks wait in `recv`, at different lines, as their stacks show": (
            stalled_job(
                *(
                    waiting_member(
                        r,
                        op=None,
                        stack=sample_stack(_RECV, msgspec.structs.replace(USER, line=41 + r)),
                    )
                    for r in range(2)
                )
            ),
            "all 2 members wait for each other in 2 different places",
        ),
        "one rank sends and the other receives, but not from it, as their stacks show": (
            stalled_job(
                waiting_member(0, op=None, stack=sample_stack(_SEND, USER)),
                waiting_member(1, op=None, stack=sample_stack(_RECV, USER)),
            ),
            "all 2 members wait for each other in 2 different places",
        ),
        "a `send` and a `recv` with different tags": (
            stalled_job(
                waiting_member(0, op=Op("send to rank 1, tag 120", 41, 90.0)),
                waiting_member(1, op=Op("recv from rank 0, tag 127", 41, 90.0)),
            ),
            "all 2 members wait for each other in 2 different places",
        ),
        "two of four ranks wait for each other while the other two train": (
            sample_job(
                *(
                    msgspec.structs.replace(
                        member_in_group_call(r, "1", 0, 1, in_second_group=False), moved_at=90.0
                    )
                    for r in (0, 1)
                ),
                *(sample_member(r, moved_at=99.9) for r in (2, 3)),
            ),
            "ranks 0-1 wait for each other in all_reduce at train.py:41 in train",
        ),
        "all workers wait in a collective of a thread other than the main one": (
            stalled_job(
                *(waiting_member(r, op=Op("all_reduce", 41, 90.0, beside=True)) for r in range(2))
            ),
            "all 2 members wait for each other in all_reduce in another thread, the main one at "
            "train.py:41 in train",
        ),
        "rank 0 waits for an `irecv` from rank 1, which is in an all_reduce": (
            stalled_job(member_waiting_for_peer(0, 1, "Work.wait for irecv"), waiting_member(1)),
            "all 2 members wait for each other in 2 different places",
        ),
        "two pairs of ranks, both ranks of each wait to receive from each other": (
            job_waiting_for_peers({0: 1, 1: 0, 2: 3, 3: 2}),
            "all 4 members wait for each other in recv at train.py:41 in train",
        ),
        "rank 2 waits for a message from rank 0, which is in a collective without rank 2": (
            stalled_job(
                *(member_in_group_call(r, "1", 0, 1, in_second_group=False) for r in (0, 1)),
                member_waiting_for_peer(2, 0),
            ),
            "all 3 members wait for each other in 2 different places",
        ),
        "two groups of ranks, each of which waits in a collective of its own": (
            stalled_job(
                *(member_in_group_call(r, "1", 0, 1, in_second_group=False) for r in (0, 1)),
                *(member_in_group_call(r, "2", 2, 3, in_second_group=False) for r in (2, 3)),
            ),
            "all 4 members wait for each other in all_reduce at train.py:41 in train",
        ),
    },
    silent_on={
        "workers that unpickle the gathered objects at full CPU": stalled_job(
            *(waiting_member(r, op=Op("all_gather_object", 41, 90.0), cpu=1.0) for r in range(2))
        ),
        "a long transfer between all workers": stalled_job(
            waiting_member(0, traffic=3e6), waiting_member(1, traffic=3e6)
        ),
        "a long transfer between two of four ranks": sample_job(
            *(
                msgspec.structs.replace(
                    member_in_group_call(r, "1", 0, 1, in_second_group=False), traffic=3e6
                )
                for r in (0, 1)
            ),
            *(sample_member(r, moved_at=99.9) for r in (2, 3)),
        ),
        "the last worker has just entered the collective": sample_job(
            *(
                msgspec.structs.replace(
                    member_in_group_call(r, "1", 0, 1, 2, in_second_group=False), moved_at=at
                )
                for r, at in enumerate((90.0, 90.0, 99.9))
            )
        ),
        "one of three workers is not in a collective": stalled_job(
            waiting_member(0), waiting_member(1), sample_member(2)
        ),
        "one rank passes another dtype, which another rule reports": stalled_job(
            *(
                member_with_calls(
                    r,
                    sample_signature(dtype="int32" if r == 2 else "float32"),
                    op=Op("all_reduce", 1, 90.0, "0", 1),
                    stack=sample_stack(REDUCE, USER),
                )
                for r in range(3)
            )
        ),
        "one of three workers has ended": stalled_job(
            waiting_member(0), waiting_member(1), ended_member(2, code=0)
        ),
        "each rank waits in a group that the other has not entered, which HANG021 reports": stalled_job(
            member_in_group_call(0, "1", 0, 1), member_in_group_call(1, "2", 0, 1)
        ),
        "a stage of a pipeline has not sent, which HANG024 reports": job_waiting_for_peers(
            {0: 1, 1: 2, 2: 1, 3: 2}
        ),
    },
    passes=True,
    drill=("other-order-unseen", "jax-extra-sync", "jax-mesh-order"),
)
