"""A worker reached the end of its data earlier than the others, which now wait for it.

The batches of each pass through a loader are counted. They are compared if other workers wait for one in
that pass, or have lost it. Where no rank waits for another between passes, the ranks get into different
passes: then the lengths of their last whole passes are compared. Uneven data that does no harm is not
reported: an evaluation, torch's `Join`, a pass that all have finished.

## Why it matters
Every step needs every rank. A rank with one batch fewer goes on to whatever comes after its loop. The
others wait in a step that it never takes, or fail with a closed connection, and no message mentions the data.

## What to do
Give every rank the same number of batches: `DistributedSampler` (it pads), `drop_last=True`, shards of
equal length, a fixed number of steps per epoch. If the data is uneven by nature, torch's `Join` lets ranks
that are done shadow the others. With tf.data, use `ds.repeat()` and an equal number of steps, or
`strategy.experimental_distribute_dataset(ds)`: its workers agree before each batch on whether anybody has
one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from allaboard.analysis.collectives.collective_order import find_call_differences
from allaboard.analysis.data.batch_comparison import (
    EXAMPLE_LOOP_FRAME,
    UnevenPass,
    example_reading_member,
    find_passes_apart,
    find_uneven_pass,
)
from allaboard.analysis.failures.failure_causality import has_failed
from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.analysis.member_names import name_members
from allaboard.analysis.stalls.lock_kind import describe_wait
from allaboard.analysis.stalls.stall import find_stall
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Loop, Member
from allaboard.facts.rank_sets import name_ranks
from allaboard.facts.samples import REDUCE, USER, sample_job, sample_stack, stalled_job


def check(view: JobView) -> Iterator[Claim]:
    uneven_pass = find_uneven_pass(view) or find_passes_apart(view)
    if uneven_pass is not None and _does_harm(view, uneven_pass):
        yield _claim(uneven_pass)


def _does_harm(view: JobView, uneven_pass: UnevenPass) -> bool:
    """Return True if a member with more batches waits in vain, lost its peer, or makes a call of its own."""
    more = {m.event_key for m, _ in uneven_pass.more if _is_in_pass(m, uneven_pass)}
    if any(m.event_key in more and has_failed(m) and has_lost_peer(m) for m in view.members):
        return True
    fewer = {m.event_key for m in uneven_pass.fewer}
    current_stall = find_stall(view)
    if current_stall is not None:
        waits = {m.event_key for m in current_stall.waiting}
        others_absent = any(
            m.event_key not in waits | fewer for m in view.members if not m.launcher
        )
        # A member that waits too is not awaited if another one is absent.
        if more & waits and not (others_absent and fewer <= waits):
            return True
    return any(m.event_key in fewer for d in find_call_differences(view) for m, _ in d.calls)


def _is_in_pass(member: Member, uneven_pass: UnevenPass) -> bool:
    """Return True if the member is still in that pass: one that is past it waits for no one there."""
    return any(
        p.place == uneven_pass.loop_frame
        and p.pass_ != p.ended
        and uneven_pass.pass_ in (p.pass_, 0)
        for p in member.loops
    )


def _claim(uneven_pass: UnevenPass) -> Claim:
    counts = ", ".join(f"rank {m.who.rank} {n}" for m, n in uneven_pass.more[:8])
    most = max(n for _, n in uneven_pass.more)
    fewer, least_batches = name_members(uneven_pass.fewer), uneven_pass.least_batches
    fewer_ranks = name_ranks([m.who.rank for m in uneven_pass.fewer])
    if uneven_pass.pass_:
        summary = (
            f"{fewer} had {least_batches} batches in pass {uneven_pass.pass_} at "
            f"{uneven_pass.loop_frame}, the others {most} or more: they wait for it in the next step"
        )
        evidence = f"{fewer_ranks} {least_batches} and no more; until now {counts}"
    else:
        summary = (
            f"{fewer} had {least_batches} batches in each pass at {uneven_pass.loop_frame}, the others "
            f"{most}: it has ended its passes earlier, and they wait for it in the next step"
        )
        evidence = f"batches in the last whole pass: {fewer_ranks} {least_batches}, {counts}"
    return Claim(
        summary=summary,
        who=tuple(m.who for m in uneven_pass.fewer),
        evidence=(
            Evidence(
                evidence, f"loader at {uneven_pass.loop_frame.file}:{uneven_pass.loop_frame.line}"
            ),
            *_present_places(uneven_pass.fewer),
        ),
        fix=_FIXES["tensorflow" if _is_tensorflow(uneven_pass.fewer[0]) else "torch"],
        certainty=Certainty.LIKELY,
    )


def _present_places(members: Sequence[Member]) -> tuple[Evidence, ...]:
    """Return where the members with fewer batches are now, if they were sampled there."""
    sampled = ((m, m.stack) for m in members[:8] if m.alive)
    return tuple(
        Evidence(f"rank {m.who.rank} is {describe_wait(stack)} at {stack.main_frame}", stack.by)
        for m, stack in sampled
        if stack is not None and stack.frames
    )


_FIXES = {
    "torch": "give every rank the same number of batches (DistributedSampler, drop_last=True, "
    "an equal number of steps), or use torch's Join",
    "tensorflow": "give every worker the same number of batches (shards of equal size, ds.repeat() and an "
    "equal number of steps), or let the strategy distribute it: strategy.experimental_distribute_dataset(ds)",
}
"""What to do, by framework."""


def _is_tensorflow(member: Member) -> bool:
    return member.framework == "tensorflow"


def _reader(rank: int, batches: int, whole: int = 0) -> Member:
    loop = Loop(EXAMPLE_LOOP_FRAME, 1, batches, 1 if whole else 0, whole)
    return example_reading_member(rank, loops=(loop,))


def _waiting_reader(rank: int, batches: int) -> Member:
    return msgspec.structs.replace(_reader(rank, batches), stack=sample_stack(REDUCE, USER))


def _in_a_later_pass(rank: int, whole: int, ended: int, batches: int) -> Member:
    """Return a member in its pass ``ended + 1``, or after its last pass if it has taken no batch of it."""
    pass_ = ended + 1 if batches else ended
    loop = Loop(EXAMPLE_LOOP_FRAME, pass_, batches or whole, ended, whole)
    return example_reading_member(rank, loops=(loop,))


def _waiting_in_a_pass(rank: int, whole: int, ended: int, batches: int) -> Member:
    member = _in_a_later_pass(rank, whole, ended, batches)
    return msgspec.structs.replace(member, stack=sample_stack(REDUCE, USER))


_FINISHED_PASS = (Loop(EXAMPLE_LOOP_FRAME, 1, 12, 1, 12),)


def _waiting_past_pass(rank: int) -> Member:
    return msgspec.structs.replace(
        _waiting_reader(rank, 13), loops=(Loop(EXAMPLE_LOOP_FRAME, 1, 13, 1, 13),)
    )


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("loops",),
    fires_on={
        "one rank has 12 batches, and the others wait in their 13th step": (
            stalled_job(_waiting_reader(0, 13), _reader(1, 12, 12), _waiting_reader(2, 13)),
            "worker 1 had 12 batches in pass 1 at train.py:30 in train, the others 13 or more: they wait "
            "for it in the next step",
        ),
        "the rank with 90 batches has ended its third pass, those with 100 have not": (
            stalled_job(
                _waiting_in_a_pass(0, 100, 2, 71),
                _in_a_later_pass(1, 90, 3, 0),
                _waiting_in_a_pass(2, 100, 2, 71),
            ),
            "worker 1 had 90 batches in each pass at train.py:30 in train, the others 100: it has ended "
            "its passes earlier, and they wait for it in the next step",
        ),
    },
    silent_on={
        "passes of different lengths, and all ranks are in the same pass": stalled_job(
            _waiting_in_a_pass(0, 100, 2, 71),
            _in_a_later_pass(1, 90, 2, 71),
            _waiting_in_a_pass(2, 100, 2, 71),
        ),
        "the rank that is ahead has more batches in each pass than the others": stalled_job(
            _waiting_in_a_pass(0, 90, 2, 71),
            _in_a_later_pass(1, 100, 3, 0),
            _waiting_in_a_pass(2, 90, 2, 71),
        ),
        "one rank has fewer batches, and no rank waits for it": sample_job(
            _reader(0, 13), _reader(1, 12, 12), _reader(2, 13)
        ),
        "all ranks had the same number of batches": stalled_job(
            _waiting_reader(0, 12), _reader(1, 12, 12), _waiting_reader(2, 12)
        ),
        "all ranks have finished the pass, and two of them wait for the third": stalled_job(
            _reader(0, 13, 13),
            msgspec.structs.replace(_waiting_reader(1, 12), loops=_FINISHED_PASS),
            _waiting_past_pass(2),
        ),
        "the rank with fewer batches waits for a third rank, as another does": stalled_job(
            _waiting_reader(0, 13),
            msgspec.structs.replace(_reader(1, 12, 12), stack=sample_stack(REDUCE, USER)),
            _reader(2, 13),
        ),
        "one rank is in the loop of another loader, in an evaluation of its own": stalled_job(
            _waiting_reader(0, 13),
            example_reading_member(1, loops=(Loop(USER, 1, 12, 1, 12),)),
            _waiting_reader(2, 13),
        ),
    },
    drill=("uneven-batches", "uneven-passes"),
)
