"""The batches of all ranks side by side, by loop, pass and number.

Only batches of the same loop and the same pass are compared. A loader that only one rank iterates over, to
evaluate or to warm up, is not compared.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import msgspec

from allaboard.facts import Batch, Frame, JobView, Loop, Member, Pace
from allaboard.facts.collective_calls import GroupState
from allaboard.facts.memo import cached_per_view
from allaboard.facts.samples import sample_member, sample_signature

DDP_BACKWARD = "DDP backward"
"""Name that the probe gives to the backward pass of DistributedDataParallel."""
MIN_SEEN_BATCHES = 3
"""Batches that must have been sampled on every rank."""

MIN_REPEATED_BATCHES = 6
"""Batches of a rank that must all be one before it counts as reading only that."""


class UnevenPass(msgspec.Struct, frozen=True, kw_only=True):
    """A pass over the data in which ranks had different numbers of batches."""

    loop_frame: Frame
    """Line of the loop."""
    pass_: int
    """Number of the pass, from 1; 0 if it is each pass, and the members have come passes apart."""
    least_batches: int
    """Batches after which the first ranks came to the end of their data."""
    fewer: tuple[Member, ...]
    """Members that had only so many batches."""
    more: tuple[tuple[Member, int], ...]
    """Members that had more batches, with their number so far."""


@cached_per_view
def find_uneven_pass(view: JobView) -> UnevenPass | None:
    """Return the first pass in which ranks had different numbers of batches; None if none is known."""
    for loop_frame, loops in _loops_by_frame(view).items():
        ended = [(m, p) for m, p in loops if p.whole and p.ended]
        for pass_ in sorted({p.ended for _, p in ended}):
            batches_at_end = {m.event_key: p.whole for m, p in ended if p.ended == pass_}
            batches_had = [(m, _batches_had(p, pass_)) for m, p in loops]
            least_batches = min(batches_at_end.values())
            more = tuple((m, n) for m, n in batches_had if n > least_batches)
            if more:
                fewer = tuple(
                    m for m, _ in loops if batches_at_end.get(m.event_key) == least_batches
                )
                return UnevenPass(
                    loop_frame=loop_frame,
                    pass_=pass_,
                    least_batches=least_batches,
                    fewer=fewer,
                    more=more,
                )
    return None


@cached_per_view
def find_passes_apart(view: JobView) -> UnevenPass | None:
    """Return the loop whose passes are shorter on some ranks, so that these are in a later pass; None if
    none is known.

    Where nothing makes the ranks meet after a pass, the gradients of one pass are averaged with those of
    another, and only the end of the training shows it.
    """
    for loop_frame, loops in _loops_by_frame(view).items():
        whole = [(m, p) for m, p in loops if p.whole and p.ended]
        if len(whole) < len(loops) or len({p.whole for _, p in whole}) < 2:
            continue
        least_batches = min(p.whole for _, p in whole)
        fewer = [(m, p) for m, p in whole if p.whole == least_batches]
        first_ahead = min(p.ended for _, p in fewer)
        more = [(m, p) for m, p in whole if p.whole > least_batches]
        if all(p.ended < first_ahead for _, p in more):
            return UnevenPass(
                loop_frame=loop_frame,
                pass_=0,
                least_batches=least_batches,
                fewer=tuple(m for m, _ in fewer),
                more=tuple((m, p.whole) for m, p in more),
            )
    return None


def _batches_had(loop: Loop, pass_: int) -> int:
    """Return how many batches the loop had in that pass, as far as is known."""
    if loop.ended == pass_:
        return loop.whole
    return loop.batches if loop.pass_ == pass_ else 0


class BatchRow(NamedTuple):
    """The batch with one number on every rank."""

    loop_frame: Frame
    """Line of the loop."""
    batches: tuple[Batch, ...]
    """One batch per rank, in the order of the members."""
    may_be_last: bool
    """True if it may be the last of its pass, which may rightly be smaller."""


@cached_per_view
def batches_side_by_side(view: JobView) -> dict[Frame, tuple[BatchRow, ...]]:
    """Return the batches that were sampled on every member, by loop.

    Only for a job whose gradients are averaged over all members, and for loops that train: there was a step
    between one batch and the next.
    """
    members = tuple(m for m in view.alive if not m.launcher)
    if len(members) < 2 or not any(_averages_gradients(m, len(members)) for m in members):
        return {}
    rows = {}
    for loop_frame, loops in _loops_by_frame(view).items():
        if len(loops) < len(members) or not all(_is_training_loop(p) for _, p in loops):
            continue
        batches_by_key = [{(b.pass_, b.number): b for b in p.samples} for _, p in loops]
        # Only batches that all ranks sampled can be compared.
        shared = sorted(set.intersection(*(set(k) for k in batches_by_key)))
        batches_in_pass = {k: min(_batches_had(p, k[0]) for _, p in loops) for k in shared}
        rows[loop_frame] = tuple(
            BatchRow(loop_frame, tuple(b[k] for b in batches_by_key), k[1] >= batches_in_pass[k])
            for k in shared
        )
    return rows


@cached_per_view
def find_repeating_members(view: JobView) -> tuple[Member, ...]:
    """Return the members that read one batch again and again while the batches of all others differ."""
    members = tuple(m for m in view.alive if not m.launcher)
    for rows in batches_side_by_side(view).values():
        by_member = list(zip(*([b.digest for b in row.batches] for row in rows), strict=True))
        repeats = [len(set(digests)) == 1 for digests in by_member]
        distinct_batches = [
            digests for digests, is_one in zip(by_member, repeats, strict=True) if not is_one
        ]
        if (
            len(rows) >= MIN_REPEATED_BATCHES
            and distinct_batches
            and all(0 not in digests for digests in by_member)
            and all(len(set(digests)) >= MIN_SEEN_BATCHES for digests in distinct_batches)
        ):
            return tuple(m for m, is_one in zip(members, repeats, strict=True) if is_one)
    return ()


def _averages_gradients(member: Member, size: int) -> bool:
    """Return True if the member's last call is DDP's over all members.

    Members that divide one model between them may well read the same data.
    """
    return any(
        s.size == size and s.last_call is not None and s.last_call.op == DDP_BACKWARD
        for s in member.groups
    )


def _is_training_loop(loop: Loop) -> bool:
    # Evaluation loops take batches without any step between them.
    steps = [b.steps for b in loop.samples if b.pass_ == loop.pass_]
    return len(set(steps)) >= min(2, len(steps))


def _loops_by_frame(view: JobView) -> dict[Frame, list[tuple[Member, Loop]]]:
    loops_by_frame: dict[Frame, list[tuple[Member, Loop]]] = defaultdict(list)
    for member in view.members:
        for loop in member.loops:
            loops_by_frame[loop.place].append((member, loop))
    return loops_by_frame


EXAMPLE_LOOP_FRAME = Frame("/home/u/train.py", 30, "train")
"""The loop over the data in rules' examples."""


def example_reading_member(
    rank: int, *digests: int, rows: int = 8, size: int = 3, **changes: Any
) -> Member:
    """Return a member for rules' examples that trains with DDP and has had these batches."""
    samples = tuple(Batch(1, n, rows, d, n + 10) for n, d in enumerate(digests, 1))
    group = GroupState("0", 1, 40, 90.0, size, last_call=sample_signature(DDP_BACKWARD))
    loop = Loop(EXAMPLE_LOOP_FRAME, 1, len(digests) + 1, samples=samples)
    fields = {"groups": (group,), "loops": (loop,), "pace": Pace()} | changes
    return sample_member(rank, **fields)
