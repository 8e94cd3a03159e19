"""What a rank called in its groups: written by the probe, read by the agent."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from allaboard.blackbox.collective_calls import SAFE_RING_CALLS, parse_ranks
from allaboard.blackbox.reader import OpenBox
from allaboard.facts import Signature
from allaboard.probe import layout
from allaboard.probe.adapters._torch.collective_signatures import new_group
from allaboard.probe.blackbox import Box
from allaboard.probe.collective_calls import TRIAL_CALLS, Calls, Group, rank_ranges


class Rank:
    """One black box, written and read."""

    def __init__(self, folder: Path) -> None:
        path = folder / f"{os.getpid()}.box"
        self.box = Box(str(path))
        self.reader = OpenBox(path)
        self.calls = Calls(self.box)
        group = self.calls.group("0", 1, range(4), 2)
        assert group is not None
        self.group: Group = group

    def call(self, op: str, *shape: int, root: int = -1) -> None:
        key = (op, shape, root)
        known = self.calls.known_signatures.get(key)
        if known is None:
            shown = (op, "sum", "float32", shape, root)
            known = self.calls.signature(key, shown, (shape, root), sys._getframe(0))
        self.group.call(*known, 5.0)


def test_calls_come_back(tmp_path: Path) -> None:
    rank = Rank(tmp_path)
    assert rank.reader.read_snapshot().groups == (), "a group without a call has nothing to say"
    rank.call("all_reduce", 2, 3)
    rank.call("broadcast", 5, root=1)
    (state,) = rank.reader.read_snapshot().groups
    assert (state.key, state.number, state.size, state.ranks) == (("0", 1), 2, 4, (0, 1, 2, 3))
    assert [n for n, _ in state.marks] == [2, 1]
    assert state.last_call is not None and state.last_call.root == 1
    traced = rank.reader.calls.trace_group("0", 1)
    assert traced is not None and (traced.first_number, traced.last_number) == (1, 2)
    first = traced.calls[0][1]
    assert first is not None and str(first) == "all_reduce(float32[2,3], sum)"
    assert first.elements == 6
    assert first.site is not None and first.site.function == "call"
    assert first.site.file.endswith("test_collective_calls.py")
    assert rank.reader.calls.trace_group("1", 1) is None


def test_equal_calls_give_equal_digests_and_others_do_not(tmp_path: Path) -> None:
    digests = []
    for n, calls in enumerate([("a", "b", "c"), ("a", "b", "c"), ("b", "a", "c")]):
        folder = tmp_path / str(n)
        folder.mkdir()
        rank = Rank(folder)
        for op in calls:
            rank.call(op, 4)
        digests.append(dict(rank.reader.read_snapshot().groups[0].marks))
    assert digests[0] == digests[1]
    assert all(digests[0][n] != digests[2][n] for n in (1, 2, 3))


def test_the_ring_goes_round_and_marks_stay_within_it(tmp_path: Path) -> None:
    rank = Rank(tmp_path)
    for n in range(5000):
        rank.call("all_reduce", 1 + n % 700)
    (state,) = rank.reader.read_snapshot().groups
    assert state.number == 5000
    assert all(n > 5000 - SAFE_RING_CALLS for n, _ in state.marks)
    assert {5000, 4992, 4864} <= {n for n, _ in state.marks}
    traced = rank.reader.calls.trace_group("0", 1)
    assert traced is not None and traced.last_number == 5000
    shapes = [s.elements if s is not None else 0 for _, s in traced.calls[-300:]]
    assert shapes == [1 + n % 700 for n in range(4700, 5000)]


def test_only_so_many_groups_have_room_and_destroyed_ones_leave_it(tmp_path: Path) -> None:
    rank = Rank(tmp_path)
    groups = [rank.calls.group(str(n), 1, [0, n], 0) for n in range(1, 20)]
    made = [g for g in groups if g is not None]
    assert len(made) == layout.GROUPS - 1
    rank.calls.free(made[0])
    assert rank.calls.group("again", 1, [0, 1], 0) is not None


def test_groups_that_come_between_two_looks_are_found(tmp_path: Path) -> None:
    """Neither a group without a call nor the room of a destroyed one is the end of the groups."""
    rank = Rank(tmp_path)
    expected = []
    for number in range(1, layout.GROUPS):
        group = rank.calls.group(f"{number}", 1, range(4), 2)
        assert group is not None
        if number % 3:
            group.call(1, 1, 1, 5.0)
            expected.append(f"{number}")
        assert [state.name for state in rank.reader.read_snapshot().groups] == expected
    rank.calls.free(rank.group)
    group = rank.calls.group("again", 1, range(4), 2)
    assert group is not None and group.index == rank.group.index
    group.call(1, 1, 1, 5.0)
    assert [s.name for s in rank.reader.read_snapshot().groups] == ["again", *expected]


def test_what_proves_nothing_is_flagged_once(tmp_path: Path) -> None:
    rank = Rank(tmp_path)
    rank.call("all_reduce", 1)
    rank.group.unordered(2)
    rank.group.unordered(9)
    assert rank.reader.read_snapshot().groups[0].unordered == 2


@given(st.binary(min_size=256, max_size=256))
def test_ranks_of_a_hostile_box(raw: bytes) -> None:
    assert len(parse_ranks(raw)) <= 4096


@given(st.sets(st.integers(0, 2000), max_size=30))
def test_ranks_come_back_where_they_fit(given_: set[int]) -> None:
    text = rank_ranges(sorted(given_))
    assert parse_ranks(text.encode()) == (tuple(sorted(given_)) if text else ())


def test_a_signature_reads_as_a_call() -> None:
    assert str(Signature("barrier", 1)) == "barrier"
    assert str(Signature("broadcast", 1, 3, 0, "", "int64", "3")) == "broadcast(int64[3], root 0)"


def test_the_user_s_line_is_found_below_a_deep_library(tmp_path: Path) -> None:
    """Lightning's and Trainer's loops stand some forty calls above a backward."""
    text = "def down(n):\n    return seen() if n == 0 else down(n - 1)\n"
    library = compile(text, "/env/lib/python3.11/site-packages/trainer/loop.py", "exec")
    calls = Rank(tmp_path).calls
    names = {"seen": lambda: calls.caller(sys._getframe(0).f_back)}
    exec(library, names)
    found = names["down"](45)
    assert found.f_code.co_name == "test_the_user_s_line_is_found_below_a_deep_library"
    deeper = names["down"](500)
    assert deeper.f_code.co_name == "down"


def _proven(rank: Rank) -> int:
    """From which call on the order proves nothing; 0 for none."""
    (state,) = rank.reader.read_snapshot().groups
    return state.unordered


def test_threads_that_take_turns_prove_no_order(tmp_path: Path) -> None:
    rank = Rank(tmp_path)
    rank.group.handed("main")
    rank.call("all_reduce", 4)
    assert _proven(rank) == 0
    rank.group.handed("saver")
    rank.call("gather", 1)
    assert _proven(rank) == 2
    rank.group.handed("main")
    for _ in range(3 * TRIAL_CALLS):
        rank.call("all_reduce", 4)
        rank.group.tried()
    assert _proven(rank) == 2


def test_a_thread_that_goes_on_alone_proves_it_again(tmp_path: Path) -> None:
    rank = Rank(tmp_path)
    rank.group.handed("main")
    rank.call("barrier", 1)
    rank.group.handed("trainer")
    for _ in range(TRIAL_CALLS - 1):
        rank.call("all_reduce", 4)
        rank.group.tried()
        assert _proven(rank) == 2
    rank.call("all_reduce", 4)
    rank.group.tried()
    assert _proven(rank) == 0
    rank.group.unordered(rank.group.number + 1)
    assert _proven(rank) == TRIAL_CALLS + 2


def test_calls_on_two_kinds_of_devices_prove_no_order(tmp_path: Path) -> None:
    rank = Rank(tmp_path)
    for device in ("cuda", "cuda", "cpu", "cuda"):
        rank.group.on(device)
        rank.call("all_reduce", 4)
    assert _proven(rank) == 3


def test_what_can_be_read_only_once_is_left_to_new_group() -> None:
    ranks = iter((2, 0))
    assert new_group(ranks) == (None, None, None, -1, None)
    assert list(ranks) == [2, 0]
    told = new_group([3, 0, 1])
    assert told is not None and told[1].dtype == "0-1,3" and told[4] == (0, 1, 3)
    assert new_group([0], use_local_synchronization=True) is None


def test_digits_that_are_no_decimals_are_no_ranks() -> None:
    """`"²".isdigit()` is true, and `int("²")` raises: a box may hold anything."""
    assert parse_ranks("²".encode()) == ()
    assert parse_ranks("0-²".encode()) == ()
