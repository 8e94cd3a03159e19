"""Every worker waits for the others, and nobody moves.

## Why it matters
All are inside collectives, and still none completes. Either they are in different ones (one rank calls them
in another order), or the shapes differ, or a link between them is lost. Stacks alone cannot tell which.

## What to do
Compare the places that are given.

- If they differ, look for a collective that only some ranks call, or call in another order. For a `recv` or
  `send`, look for the other side, which must name this rank and use the same tag.
- If they are the same, suspect the network between the hosts, or a message whose shape differs between
  ranks.
- If there are several process groups, all ranks must enter them in the same order.
- If two threads of a rank call collectives, each needs a group of its own: in a shared group, each rank may
  run them in another order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import msgspec

from allaboard.contracts import Rule
from allaboard.evidence.between_two import knot, message
from allaboard.evidence.differs import group_name
from allaboard.evidence.entered import crossed, entered
from allaboard.evidence.naming import ranked
from allaboard.evidence.order import differences
from allaboard.evidence.recorded import apart
from allaboard.evidence.servers import has_servers, name
from allaboard.evidence.silent_links import silent_links
from allaboard.evidence.spot import spot
from allaboard.evidence.stall import IDLE, TRAFFIC, Stall, settled, stall, transferring, unseen
from allaboard.evidence.standing import stood_since
from allaboard.evidence.thread_ended import CALLED, NOTE, ended_thread, owes_message, thread_ended
from allaboard.evidence.two_threads import two_threads
from allaboard.facts import (
    Certainty,
    Claim,
    Evidence,
    Frame,
    GroupState,
    JobView,
    Member,
    Op,
    Stage,
)
from allaboard.facts.samples import (
    REDUCE,
    USER,
    called,
    ended,
    job,
    member,
    signature,
    stack,
    stalled,
    waiting,
)


def check(view: JobView) -> Iterator[Claim]:
    found = stall(view)
    if found is None or len(found.waiting) < 2 or found.elsewhere or found.gripped:
        return
    # A group may be in a long transfer while the rest of the job goes on.
    moving = any(m.traffic >= TRAFFIC for m in found.waiting)
    if moving or transferring(view) or silent_links(view) or any(map(_pickles, found.waiting)):
        return
    # A member that has ended is the better answer, and has its own rule; so has a call that differs;
    # a job with parameter servers has no collective, and its own rules.
    known = differences(view) or apart(view)
    if has_servers(view) or any(not m.alive for m in view.members) or known:
        return
    if not all(settled(m.stack) for m in found.waiting):
        return
    circle = crossed(found.waiting)
    # A link that fell silent shows after some retransmissions, and is the better answer.
    if not circle and len(_hosts(found)) > 1 and view.now - stood_since(view) < BETWEEN_HOSTS:
        return
    shared = two_threads(found.waiting)
    if shared:
        yield _shared(view, found, shared)
    elif fallen := _fallen(found):
        yield _left_by(view, found, fallen)
    elif tied := knot(found.waiting):
        yield _tied(view, found, tied)
    else:
        yield _crossed(view, circle) if circle else _claim(view, found)


def _pickles(one: Member) -> bool:
    """Whether it may write or read an object, before or after that is exchanged, within the same call."""
    return one.op is not None and "_object" in one.op.name and one.cpu >= IDLE


RECEIVES, SENDS = {"recv", "recv_object_list"}, {"send", "send_object_list"}
UNDER_WAY = "Work.wait for "
"""How the wait for a message that is under way begins; its own side of it was not left out."""
MANY = 4
"""Members that are named."""
BETWEEN_HOSTS = 10.0
"""Seconds that members of several hosts have stood before nothing better is known."""


def _hosts(found: Stall) -> set[str]:
    return {m.who.host for m in found.waiting}


def _crossed(view: JobView, circle: tuple[Member, ...]) -> Claim:
    calls = []
    for each in circle:
        state = entered(each)
        assert state is not None
        calls.append(f"call {state.number} of {group_name(view, state.key)}")
    waits = [f"{name(m)} {'' if n else 'waits '}in {calls[n]}" for n, m in enumerate(circle)]
    more = f" and {len(waits) - MANY} more" if len(waits) > MANY else ""
    return Claim(
        summary=f"{', '.join(waits[:MANY])}{more}: the ranks enter their groups in different orders, or "
        "one left out a call",
        who=tuple(m.who for m in circle),
        evidence=tuple(
            Evidence(
                f"rank {m.who.rank}: {_where(m)}, in {call}, which rank {other.who.rank} has not made",
                "black box",
            )
            for m, call, other in list(zip(circle, calls, (*circle[1:], circle[0]), strict=True))[
                :MANY
            ]
        ),
        fix="enter the groups in one order on all ranks, and see that none leaves out a call of its "
        "groups (an early continue, a condition that only some meet)",
        certainty=Certainty.LIKELY,
        since=stood_since(view),
    )


def _fallen(found: Stall) -> tuple[Member, ...]:
    """Those of whom a thread has ended by an exception, while another one waits in a thread beside its main
    one, or for a message of the kind that this thread sent or received last; () where nobody waits so."""
    besides = [m for m in found.waiting if m.op is not None and m.op.beside]
    fallen = tuple(m for m in found.waiting if besides and m not in besides and ended_thread(m))
    return fallen or tuple(m for m in found.waiting if owes_message(m, found.waiting))


def _left_by(view: JobView, found: Stall, fallen: tuple[Member, ...]) -> Claim:
    first = fallen[0]
    ended = ended_thread(first)
    assert ended is not None
    where = f" at {ended.place}" if ended.place else ""
    return Claim(
        summary=f"{_who(view, found)} wait for each other, after a thread of {_names(fallen)} ended by "
        f"{ended.raised}{where}",
        who=tuple(m.who for m in fallen),
        evidence=tuple(e for m in fallen[:MANY] for e in thread_ended(m))
        + tuple(Evidence(f"{ranked([m])}: {_where(m)}", "stacks") for m in found.waiting[:MANY]),
        fix=f"fix {ended.place.partition(' in ')[0] or 'what ended it'}: the others wait for that thread's "
        f"{'messages' if owes_message(first, found.waiting) else 'collectives'}, which will never come; its "
        f"traceback is in {first.log}",
        certainty=Certainty.LIKELY,
        since=stood_since(view),
    )


def _tied(view: JobView, found: Stall, tied: tuple[Member, ...]) -> Claim:
    """All others wait for these, who wait for each other."""
    waits = [f"rank {m.who.rank} in {m.op.name}" for m in tied if m.op is not None]
    sides = ", ".join(
        f"rank {m.who.rank}'s {m.op.name}" for m in tied if m.op and message(m.op.name)
    )
    return Claim(
        summary=f"{_who(view, found)} wait for each other: {', '.join(waits[:MANY])}; the rest wait for them",
        who=tuple(m.who for m in tied),
        evidence=tuple(
            Evidence(f"{ranked([m])}: {_where(m)}", "stacks")
            for m in (*tied[:MANY], *(m for m in found.waiting if m not in tied))
        )[: 2 * MANY],
        fix=f"look for the other side of {sides}: one was left out, or names another rank or tag",
        certainty=Certainty.LIKELY,
        since=stood_since(view),
    )


def _shared(view: JobView, found: Stall, shared: tuple[Member, ...]) -> Claim:
    first = shared[0]
    assert first.op is not None
    threads = f"{first.op.name} and {first.op.also}"
    return Claim(
        summary=f"{_who(view, found)} wait for each other, and two threads of {_names(shared)} are in "
        f"collectives of one group at once: {threads}",
        who=tuple(m.who for m in shared),
        evidence=tuple(
            Evidence(f"rank {m.who.rank}: {_where(m)}; in another thread: {m.op.also}", "black box")
            for m in shared[:MANY]
            if m.op is not None
        ),
        fix="two threads use one group, and take turns differently on each rank: give the one beside the "
        "main thread (an asynchronous checkpoint) a group of its own, process_group=dist.new_group()",
        certainty=Certainty.LIKELY,
        since=stood_since(view),
    )


def _names(some: tuple[Member, ...]) -> str:
    more = f" and {len(some) - MANY} more" if len(some) > MANY else ""
    return ", ".join(name(m) for m in some[:MANY]) + more


def _claim(view: JobView, found: Stall) -> Claim:
    places: dict[str, list[Member]] = defaultdict(list)
    told: dict[str, list[Member]] = defaultdict(list)
    for one in found.waiting:
        places[_where(one, _call(one))].append(one)
        told[_where(one)].append(one)
    differ = len(places) > 1
    groups = sorted(places.values(), key=len)
    # One place against many has the odd one out; where none is odd, nobody is.
    odd = groups[0] if differ and len(groups[0]) < len(groups[1]) else list(found.waiting)
    where = f"{len(places)} different places" if differ else next(iter(places)).removeprefix("in ")
    return Claim(
        summary=f"{_who(view, found)} wait for each other in {where}",
        who=tuple(m.who for m in odd),
        evidence=tuple(
            Evidence(f"{ranked(here)}: {where}", "stacks")
            for where, here in list(told.items())[:MANY]
        ),
        fix=_fix(found, differ),
        certainty=Certainty.LIKELY if differ else Certainty.UNKNOWN,
        since=stood_since(view),
    )


def _who(view: JobView, found: Stall) -> str:
    """Those who wait; by their ranks where the rest of the job moves."""
    ranks = [str(m.who.rank) for m in found.waiting]
    if len(ranks) == sum(1 for m in view.alive if not m.launcher):
        return f"all {len(ranks)} members"
    more = f" and {len(ranks) - MANY} more" if len(ranks) > MANY else ""
    return f"ranks {', '.join(ranks[:MANY])}{more}"


def _fix(found: Stall, differ: bool) -> str:
    """What to do, by the calls that they are in."""
    calls = {_call(m) for m in found.waiting}
    if calls <= RECEIVES:
        return "all wait to receive and nobody sends: let one side send first, or use batch_isend_irecv"
    if calls <= SENDS:
        return "all send and nobody receives: let one side receive first, or use batch_isend_irecv"
    between = [
        m
        for m in found.waiting
        if m.op is not None and (_call(m) in RECEIVES | SENDS or message(m.op.name))
    ]
    if between:
        sides = ", ".join(f"rank {m.who.rank}'s {m.op.name}" for m in between[:MANY] if m.op)
        return (
            f"look for the other side of {sides}: the two must name each other, with the same tag"
        )
    if any(m.op is not None and m.op.beside for m in found.waiting):
        return (
            "give the thread that calls collectives beside the main one a group of its own "
            "(dist.new_group): in one group, threads that take turns differently call in another order"
        )
    if differ:
        return "look for a collective that only some ranks call or call in another order"
    network = "check the network between the hosts, and " if len(_hosts(found)) > 1 else "check "
    return f"{network}that all ranks pass the same shape and dtype"


def _call(one: Member) -> str:
    """The name of the call that it is in, without the rank and the tag of a message."""
    name = one.op.name if one.op is not None else ""
    word = re.split("[ ,]", name.removeprefix(UNDER_WAY), maxsplit=1)[0]
    return word if word in RECEIVES | SENDS or name.startswith(UNDER_WAY) else name


def _where(one: Member, call: str = "") -> str:
    place = one.stack.user if one.stack is not None else None
    what = (call or one.op.name) if one.op is not None else unseen(one) or str(spot(one.stack))
    if one.op is not None and one.op.beside:
        what += " in another thread, the main one"
    return what + (f" at {place}" if place is not None else "")


def _inside(rank: int, group: str, *ranks: int, others: bool = True) -> Member:
    """In call 21 of this group; with ``others``, in a second group of the same ranks that it has yet
    to enter."""
    names = ("1", "2") if others else (group,)
    return waiting(
        rank,
        op=Op("all_reduce", 41, 90.0, group, 21),
        groups=tuple(
            GroupState(n, 1, 21 if n == group else 20, 90.0, len(ranks), ranks) for n in names
        ),
    )


def _between(rank: int, *groups: tuple[str, int, int, int]) -> Member:
    """In the newest of its calls in these groups (name, calls, two ranks)."""
    inside = max(groups, key=lambda g: g[1])
    return waiting(
        rank,
        op=Op("all_reduce", 41, 90.0, inside[0], inside[1]),
        groups=tuple(GroupState(n, 1, made, 90.0, 2, tuple(r)) for n, made, *r in groups),
    )


def _stage(rank: int, peer: int, call: str = "recv") -> Member:
    """It waits for a message of this rank."""
    return waiting(rank, op=Op(f"{call} from rank {peer}", 41, 90.0))


def _stages(peers: dict[int, int], call: str = "recv") -> JobView:
    return stalled(*(_stage(rank, peer, call) for rank, peer in peers.items()))


def _sender(called: str, inside: str = "barrier") -> JobView:
    """A thread of rank 1 did this last before it ended, and rank 0 waits for a message of that rank."""
    notes = {NOTE: "RuntimeError: away at /home/u/train.py:12 in report", CALLED: called}
    return stalled(
        waiting(0, op=Op("recv from rank 1, tag 7", 41, 90.0)),
        waiting(1, op=Op(inside, 41, 90.0), notes=notes),
    )


_READS = Frame("/home/u/train.py", 52, "train", "value = np.asarray(loss.addressable_data(0))")
RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "another order on rank 2": (
            stalled(waiting(0), waiting(1), waiting(2, op=Op("broadcast", 41, 90.0))),
            "all 3 members wait for each other in 2 different places",
        ),
        "one place": (
            stalled(waiting(0), waiting(1)),
            "all 2 members wait for each other in all_reduce at train.py:41 in train",
        ),
        "a value is read on one, and another calls what the others do not": (
            stalled(
                member(0, framework="jax", stack=stack(_READS)),
                waiting(1, framework="jax", op=Op("sync_global_devices", 41, 90.0)),
            ),
            "all 2 members wait for each other in 2 different places",
        ),
        "objects that nobody reads or writes": (
            stalled(*(waiting(r, op=Op("all_gather_object", 41, 90.0)) for r in range(2))),
            "all 2 members wait for each other in all_gather_object at train.py:41 in train",
        ),
        "nobody sends": (
            stalled(*(waiting(r, op=Op("recv", 41, 90.0)) for r in range(2))),
            "all 2 members wait for each other in recv at train.py:41 in train",
        ),
        "messages whose tags differ": (
            stalled(
                waiting(0, op=Op("send to rank 1, tag 120", 41, 90.0)),
                waiting(1, op=Op("recv from rank 0, tag 127", 41, 90.0)),
            ),
            "all 2 members wait for each other in 2 different places",
        ),
        "one pair of four ranks": (
            job(
                *(
                    msgspec.structs.replace(_inside(r, "1", 0, 1, others=False), moved_at=90.0)
                    for r in (0, 1)
                ),
                *(member(r, moved_at=99.9) for r in (2, 3)),
            ),
            "ranks 0, 1 wait for each other in all_reduce at train.py:41 in train",
        ),
        "two threads in one group": (
            stalled(
                waiting(0, op=Op("all_gather", 41, 90.0, also="gather_object")),
                waiting(1, op=Op("gather_object", 41, 90.0, beside=True)),
            ),
            "all 2 members wait for each other, and two threads of worker 0 are in collectives of one group "
            "at once: all_gather and gather_object",
        ),
        "in a thread beside the main one": (
            stalled(*(waiting(r, op=Op("all_reduce", 41, 90.0, beside=True)) for r in range(2))),
            "all 2 members wait for each other in all_reduce in another thread, the main one at "
            "train.py:41 in train",
        ),
        "a thread of one has ended, and the other's waits for it": (
            stalled(
                waiting(0, op=Op("all_reduce", 41, 90.0, beside=True)),
                waiting(1, notes={NOTE: "RuntimeError: away at /home/u/train.py:12 in report"}),
            ),
            "all 2 members wait for each other, after a thread of worker 1 ended by RuntimeError: away at "
            "/home/u/train.py:12 in report",
        ),
        "a stage of a pipeline did not send": (
            _stages({0: 1, 1: 2, 2: 1, 3: 2}),
            "all 4 members wait for each other: rank 1 in recv from rank 2, rank 2 in recv from rank 1; the "
            "rest wait for them",
        ),
        "stages that wait for messages under way": (
            _stages({0: 1, 1: 2, 2: 1, 3: 2}, "Work.wait for irecv"),
            "all 4 members wait for each other: rank 1 in Work.wait for irecv from rank 2, rank 2 in "
            "Work.wait for irecv from rank 1; the rest wait for them",
        ),
        "a message under way, and no circle": (
            stalled(_stage(0, 1, "Work.wait for irecv"), waiting(1)),
            "all 2 members wait for each other in 2 different places",
        ),
        "two pairs": (
            _stages({0: 1, 1: 0, 2: 3, 3: 2}),
            "all 4 members wait for each other in recv at train.py:41 in train",
        ),
        "a message of a rank that is in a call of all": (
            stalled(*(_inside(r, "1", 0, 1, 2, others=False) for r in (0, 1)), _stage(2, 0)),
            "all 3 members wait for each other: rank 0 in all_reduce, rank 2 in recv from rank 0; the rest "
            "wait for them",
        ),
        "a message of a rank that is in a call of others": (
            stalled(*(_inside(r, "1", 0, 1, others=False) for r in (0, 1)), _stage(2, 0)),
            "all 3 members wait for each other in 2 different places",
        ),
        "a thread that sent what another rank waits for has ended": (
            _sender("send to rank 0, tag 7"),
            "all 2 members wait for each other, after a thread of worker 1 ended by RuntimeError: away at "
            "/home/u/train.py:12 in report",
        ),
        "a thread that has ended sent another message": (
            _sender("send to rank 0, tag 8"),
            "all 2 members wait for each other in 2 different places",
        ),
        "a thread that has ended sent to another rank": (
            _sender("send to rank 2, tag 7"),
            "all 2 members wait for each other in 2 different places",
        ),
        "a thread that has ended sent nothing": (
            _sender(""),
            "all 2 members wait for each other in 2 different places",
        ),
        "its main thread is at a message itself": (
            _sender("send to rank 0, tag 7", "send to rank 0, tag 8"),
            "all 2 members wait for each other in 2 different places",
        ),
        "their groups in different orders": (
            stalled(_inside(0, "1", 0, 1), _inside(1, "2", 0, 1)),
            "worker 0 waits in call 21 of group 1, worker 1 in call 21 of group 2: the ranks enter "
            "their groups in different orders, or one left out a call",
        ),
        "round three groups": (
            stalled(
                _between(0, ("1", 20, 0, 1), ("3", 21, 0, 2)),
                _between(1, ("1", 21, 0, 1), ("2", 20, 1, 2)),
                _between(2, ("2", 21, 1, 2), ("3", 20, 0, 2)),
            ),
            "worker 0 waits in call 21 of the group of ranks 0, 2, worker 2 in call 21 of the group of "
            "ranks 1, 2, worker 1 in call 21 of the group of ranks 0, 1: the ranks enter their groups in "
            "different orders, or one left out a call",
        ),
        "each in the group of its own pipeline": (
            stalled(
                *(_inside(r, "1", 0, 1, others=False) for r in (0, 1)),
                *(_inside(r, "2", 2, 3, others=False) for r in (2, 3)),
            ),
            "all 4 members wait for each other in all_reduce at train.py:41 in train",
        ),
    },
    silent_on={
        "they unpickle what they have gathered": stalled(
            *(waiting(r, op=Op("all_gather_object", 41, 90.0), cpu=1.0) for r in range(2))
        ),
        "a long transfer": stalled(waiting(0, traffic=3e6), waiting(1, traffic=3e6)),
        "a long transfer of one pair": job(
            *(
                msgspec.structs.replace(_inside(r, "1", 0, 1, others=False), traffic=3e6)
                for r in (0, 1)
            ),
            *(member(r, moved_at=99.9) for r in (2, 3)),
        ),
        "the last has just come": job(
            *(
                msgspec.structs.replace(_inside(r, "1", 0, 1, 2, others=False), moved_at=at)
                for r, at in enumerate((90.0, 90.0, 99.9))
            )
        ),
        "one is not in it": stalled(waiting(0), waiting(1), member(2)),
        "their calls are known to differ": stalled(
            *(
                called(
                    r,
                    signature(dtype="int32" if r == 2 else "float32"),
                    op=Op("all_reduce", 1, 90.0, "0", 1),
                    stack=stack(REDUCE, USER),
                )
                for r in range(3)
            )
        ),
        "one has ended": stalled(waiting(0), waiting(1), ended(2, code=0)),
    },
    since="0.1",
    passes=True,
    drill=(
        "other-order-unseen",
        "crossed-groups",
        "jax-extra-sync",
        "sender-raises",
        "missing-send",
        "missing-batched-send",
    ),
)
