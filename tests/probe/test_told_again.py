"""A call that comes again from its place is told by a shorter way: what is left must be the same."""

from __future__ import annotations

import math
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from allaboard.blackbox.reader import OpenBox
from allaboard.probe import layout, member
from allaboard.probe.adapters._torch.collectives import Recorder, recorded
from allaboard.probe.blackbox import Box

FLOAT, HALF = object(), object()


class Pg:
    group_name = "0"


class Tensor:
    def __init__(self, shape: tuple[int, ...], dtype: object) -> None:
        self.shape = shape
        self.dtype = dtype

    def numel(self) -> int:
        return math.prod(self.shape)


class Rank:
    """The hooks of one process, on a box of its own, around collectives that do nothing."""

    def __init__(self, folder: Path, forgets: bool) -> None:
        folder.mkdir()
        self.box = Box(str(folder / f"{member.os.getpid()}.box"))
        self.groups = [Pg(), Pg()]
        world = SimpleNamespace(
            default_pg=self.groups[0],
            pg_group_ranks={pg: {0: 0, 1: 1} for pg in self.groups},
            pg_map=dict.fromkeys(self.groups),
        )
        self.module = SimpleNamespace(_world=world, get_rank=lambda: 0)
        self.recorder = Recorder(self.module)
        self.forgets = forgets
        self.reduce = recorded(self.recorder, "all_reduce", self.nothing)
        self.spread = recorded(self.recorder, "broadcast", self.nothing)

    def nothing(self, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("src") == 13:
            raise ValueError("no such rank")

    def calls(self, draws: list[tuple[int, ...]]) -> None:
        """One call for each draw, from places that differ, as a loop of a user would."""
        for place, size, kind, group in draws:
            if self.forgets:
                self.recorder.forget()
            tensor = Tensor((size, 2), (FLOAT, HALF)[kind])
            pg = (None, *self.groups)[group]
            if place == 0:
                self.reduce(tensor, group=pg)
            elif place == 1:
                self.reduce(tensor, "max" if kind else None, pg)
            elif place == 2:
                self.spread(tensor, src=group, group=pg)
            else:
                self.spread(tensor, group=pg, src=0)

    def left(self) -> bytes:
        """All that stands in the box of the calls, but when they were made."""
        raw = bytearray(self.box.map)
        for group in range(layout.GROUPS):
            at = layout.GROUPS_AT + group * layout.GROUP_BYTES
            raw[at + 8 : at + 16] = bytes(8)
        return bytes(raw[layout.GROUPS_AT : layout.PLACES_AT + layout.PLACES * layout.PLACE_BYTES])


@pytest.fixture(autouse=True)
def _no_box() -> Any:
    kept = member.here.box
    yield
    member.here.box = kept


def own(rank: Rank) -> None:
    """Makes this process that rank, and its test the user's own code."""
    member.here.box = rank.box


@pytest.mark.parametrize("seed", range(4))
def test_the_short_way_leaves_what_the_long_way_leaves(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    sizes = 3 if seed % 2 else layout.SIGNATURES  # so many that the ring of signatures begins anew
    draws = [
        (draw.randrange(4), draw.randrange(sizes), draw.randrange(2), draw.randrange(3))
        for _ in range(2 * layout.CALLS)
    ]
    ranks = [Rank(tmp_path / "short", False), Rank(tmp_path / "long", True)]
    for rank in ranks:
        own(rank)
        rank.calls(draws)
    assert ranks[0].left() == ranks[1].left()
    assert not ranks[0].recorder.spoiled


def test_a_destroyed_group_is_not_told_any_more(tmp_path: Path) -> None:
    rank = Rank(tmp_path / "one", False)
    own(rank)
    rank.calls([(0, 1, 0, 2)] * 3)
    rank.module._world.pg_map.pop(rank.groups[1])
    rank.recorder.refresh_groups()
    rank.module._world.pg_group_ranks.pop(rank.groups[1])
    before = rank.left()
    rank.calls([(0, 1, 0, 2)] * 3)
    assert rank.left() == before


def test_what_raised_ends_the_proof_of_order_and_the_thread_is_out_again(tmp_path: Path) -> None:
    rank = Rank(tmp_path / "one", False)
    own(rank)
    rank.calls([(2, 1, 0, 0)] * 2)
    for _ in range(2):
        with pytest.raises(ValueError, match="no such rank"):
            rank.spread(Tensor((1, 2), FLOAT), src=13)
    slot = rank.box.slot()
    assert slot is not None and slot.depth == 0
    told = OpenBox(Path(rank.box.path)).read_snapshot()
    assert told.op is None and told.ops == 4
    assert [g.number for g in told.groups] == [4]
    assert told.groups[0].unordered == 4
