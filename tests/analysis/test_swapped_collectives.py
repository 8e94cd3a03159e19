"""Whether calls were swapped, and when the last calls are read to see it."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.analysis.collectives.swapped_collectives import (
    MAX_SWAP_DISTANCE,
    find_swaps,
    members_to_trace_for_swaps,
)
from allaboard.analysis.identity_cache import cached_by_identity
from allaboard.facts import JobView, Member, Signature
from allaboard.facts.samples import member_with_calls, sample_job, sample_signature

A, B, C = (
    sample_signature(line=1),
    sample_signature(line=2),
    sample_signature(line=3, dtype="int32"),
)
GROUP = ("0", 1)


def view(*calls: tuple[Signature, ...]) -> JobView:
    return sample_job(*(member_with_calls(r, *c, size=len(calls)) for r, c in enumerate(calls)))


def untraced(member: Member, upto: int = 0) -> Member:
    traces = tuple(msgspec.structs.replace(t, calls=t.calls[:upto]) for t in member.traces if upto)
    return msgspec.structs.replace(member, traces=traces)


def read_to(number: int, of: JobView) -> JobView:
    members = tuple(untraced(m, number) for m in of.members)
    return msgspec.structs.replace(of, members=members)


def test_the_odd_one_is_who_left_the_order_that_was_kept() -> None:
    kept = (A, B) * 8
    (swap,) = find_swaps(view((*kept, A, B, A), (*kept, B, A, A)))
    assert [m.who.rank for m in swap.outliers] == [1] and swap.is_proven
    assert (swap.number, swap.second_number, swap.repeats) == (17, 18, 8)
    (swap,) = find_swaps(view((*kept, B, A), (*kept, A, B)))
    assert [m.who.rank for m in swap.outliers] == [0]


def test_calls_between_the_two_do_not_hide_it() -> None:
    kept = (A, C, B) * 9
    (swap,) = find_swaps(view((*kept, A, C, B), (*kept, B, C, A)))
    assert (swap.second_number - swap.number, swap.is_proven) == (2, True)


def test_a_few_repetitions_are_likely_and_a_broken_order_is_nothing() -> None:
    (swap,) = find_swaps(view((A, B, A, B), (A, B, B, A)))
    assert not swap.is_proven and swap.repeats == 1
    assert find_swaps(view((A, B, A, A, A, B), (A, B, A, A, B, A))) == ()


def test_other_calls_are_another_rules() -> None:
    assert find_swaps(view((A, B, C), (B, A, A))) == ()


def test_who_has_not_come_so_far_is_waited_for() -> None:
    bad = view((A, B, A, B), (A, B, B, A), ())
    assert members_to_trace_for_swaps(bad) == [] and find_swaps(bad) == ()


@pytest.mark.parametrize(
    ("calls", "read", "asked"),
    [
        (40, 0, True),  # never read
        (40, 40, False),
        (40 + MAX_SWAP_DISTANCE, 40, True),  # it had only just begun
        (81, 72, True),
        (800, 799, False),
        (1000, 800, True),
    ],
)
def test_places_that_differ_are_read_now_and_then(calls: int, read: int, asked: bool) -> None:
    long = view((A,) * (calls - 3) + (A,) * 3, (A,) * (calls - 3) + (B,) * 3)
    differs = view((A,) * calls, (B,) * calls)
    of = differs if calls != 40 + MAX_SWAP_DISTANCE else long
    assert bool(members_to_trace_for_swaps(read_to(read, of))) is asked


def test_the_same_places_ask_for_nothing() -> None:
    assert members_to_trace_for_swaps(read_to(0, view((A, B), (A, B)))) == []


def test_of_many_ranks_the_odd_ones_are_read_with_some_others() -> None:
    kept = (A, B) * 9
    many = [kept] * 200
    many[150] = (*kept[:-2], B, A)
    of = view(*many)
    ((_, pids),) = members_to_trace_for_swaps(read_to(0, of))
    assert 100 + 150 in pids and len(pids) == 64
    (swap,) = find_swaps(of)
    assert [m.who.rank for m in swap.outliers] == [150] and swap.is_proven
    in_turn = view(*[kept, (B, A) * 9] * 100)
    assert members_to_trace_for_swaps(in_turn) == [] and find_swaps(in_turn) == ()


def test_what_was_asked_is_remembered_and_no_more() -> None:
    asked: list[object] = []

    @cached_by_identity(max_entries=2)
    def told(*facts: object) -> int:
        asked.append(facts)
        return len(asked)

    one, two, three = object(), object(), object()
    assert [told(one), told(one), told(one, two), told(one), told(three), told(one)] == [
        1, 1, 2, 1, 3, 4,
    ]  # fmt: skip
