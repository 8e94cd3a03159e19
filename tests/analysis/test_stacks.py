"""The stacks of many ranks: ranges, groups, the tree, the odd ones out."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allaboard.analysis.stacks.outliers import find_outliers
from allaboard.analysis.stacks.stack_crowds import group_member_stacks, make_crowds
from allaboard.analysis.stacks.stack_groups import StackGroup, StackGroups
from allaboard.analysis.stacks.stack_tree import merge_stacks
from allaboard.facts import Frame
from allaboard.facts.diagnosis import walk_branches
from allaboard.facts.rank_sets import format_ranks, rank_ranges
from allaboard.facts.samples import REDUCE, USER, sample_member, sample_stack
from allaboard.report.stack_text import crowd_lines, tree_lines

MAIN = Frame("/home/u/train.py", 90, "<module>")
SLEEP = Frame("/home/u/data.py", 12, "fetch", "time.sleep(9)")
WAITS = (REDUCE, USER, MAIN)
ASLEEP = (SLEEP, USER, MAIN)


@given(st.sets(st.integers(0, 300)))
def test_ranges_hold_the_same_ranks(ranks: set[int]) -> None:
    shuffled = random.Random(1).sample(sorted(ranks), len(ranks))
    found = rank_ranges(shuffled)
    assert {r for a, b in found for r in range(a, b + 1)} == ranks
    assert all(b + 1 < c for (_, b), (c, _) in itertools.pairwise(found))


def test_ranges_are_written_as_people_do() -> None:
    assert format_ranks([2, 0, 1, 5, 5]) == "0-2,5"
    assert format_ranks([]) == ""
    assert format_ranks(range(0, 100, 2), shown=3) == "0,2,4 and 47 more"


def grouped(**ranks: tuple[Frame, ...]) -> StackGroups:
    groups = StackGroups()
    for name, frames in ranks.items():
        groups.add(int(name[1:]), frames)
    return groups


def test_the_tree_parts_where_ranks_part() -> None:
    groups = grouped(r0=WAITS, r1=ASLEEP, r2=WAITS)
    assert tree_lines(merge_stacks(groups)) == [
        "[0-2] train.py:90 in <module>",
        "  train.py:41 in train",
        "  [0,2] distributed_c10d.py:2800 in all_reduce",
        "  [1] data.py:12 in fetch",
    ]


def test_a_stack_that_ends_where_others_go_on_is_kept_apart() -> None:
    (branch,) = merge_stacks(grouped(r0=WAITS, r1=(USER, MAIN)))
    assert branch.ranks == ((0, 1),) and branch.calls == (MAIN, USER)
    assert [b.ranks for b in branch.below] == [((0, 0),)]


def test_the_tree_takes_very_deep_stacks() -> None:
    deep = tuple(Frame("/home/u/a.py", n, "f") for n in range(5000))
    assert (
        sum(len(b.calls) for _, b in walk_branches(merge_stacks(grouped(r0=deep, r1=deep[::-1]))))
        <= 2 * 256
    )


DUMP = """Thread 0x00007f1b2c3d4700 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 327 in wait

Thread 0x{main:016x} (most recent call first):
  File "/home/u/data.py", line 12 in fetch
  File "/home/u/train.py", line 41 in train
"""


def test_dumps_that_differ_by_thread_ids_alone_are_one_place() -> None:
    groups = StackGroups()
    for rank in range(50):
        groups.add_dump(rank, DUMP.format(main=0x7F00 + rank * 4096), 0x7F00 + rank * 4096)
    groups.add_dump(50, DUMP.format(main=1))
    (group,) = groups
    assert format_ranks(group.ranks) == "0-50"
    assert [f.function for f in group.frames] == ["fetch", "train"]


@pytest.mark.parametrize("text", ["", "\0", "Thread 0x12", "Fatal error\n  File", DUMP[:60]])
def test_dumps_without_the_main_thread_are_said_to_be(text: str) -> None:
    groups = StackGroups()
    groups.add_dump(3, text, 0x99)
    (group,) = groups
    assert crowd_lines(make_crowds(groups)) == ["  rank 3: no stack could be read"]
    assert group.frames == ()


def test_memory_is_bounded_where_every_stack_differs() -> None:
    groups = StackGroups(places=3)
    for rank in range(100):
        groups.add_dump(rank, DUMP.replace("line 12", f"line {rank}").format(main=1), 1)
    found = list(groups)
    assert [len(g.ranks) for g in found] == [1, 1, 1, 97]
    assert found[-1].why == "at places beyond the first 3"


def odd(groups: StackGroups) -> list[str]:
    return [format_ranks(g.ranks) for g in find_outliers(groups).outliers]


def test_who_does_not_wait_is_odd_also_as_a_majority() -> None:
    assert odd(grouped(r0=WAITS, r1=ASLEEP, r2=WAITS)) == ["1"]
    assert odd(grouped(r0=WAITS, r1=ASLEEP, r2=ASLEEP)) == ["1-2"]


def test_where_all_wait_the_few_elsewhere_are_odd() -> None:
    other = (REDUCE, Frame("/home/u/train.py", 66, "evaluate"), MAIN)
    assert odd(grouped(r0=WAITS, r1=WAITS, r2=other)) == ["2"]
    assert odd(grouped(r0=WAITS, r1=other)) == []  # nobody can tell which of two is wrong


def test_where_nobody_waits_nobody_is_odd() -> None:
    assert odd(grouped(r0=ASLEEP, r1=(USER, MAIN))) == []


def test_members_become_lines_and_json() -> None:
    groups = group_member_stacks(
        [
            sample_member(0, stack=sample_stack(*WAITS)),
            sample_member(1, stack=sample_stack(*ASLEEP)),
            sample_member(2),
        ]
    )
    assert crowd_lines(make_crowds(groups)) == [
        "  rank 0: in a collective at train.py:41 in train, in all_reduce",
        "> rank 1: asleep at data.py:12 in fetch",
        "  rank 2: no stack could be read",
    ]
    assert [(c.ranks, c.odd) for c in make_crowds(groups)] == [
        ("0", False),
        ("1", True),
        ("2", False),
    ]


def test_a_group_is_of_no_time() -> None:
    assert StackGroup(ASLEEP).user == SLEEP
