"""A box that is written while it is read: a round never shows with what was declared for the one before."""

from __future__ import annotations

import os
from pathlib import Path

from allaboard.blackbox.reader import OpenBox
from allaboard.blackbox.text_records import TextRecords
from allaboard.probe import text_records
from allaboard.probe.blackbox import Box
from allaboard.probe.member import ARRIVED


class _Overtaken(TextRecords):
    """Its owner comes to its next init just when the text of the last one was read."""

    owner: Box

    def _changed(self, name: str) -> bool:
        changed = super()._changed(name)
        if name == "declared" and self.owner.rounds == 1:
            arrive(self.owner, 2)
        return changed


def arrive(owner: Box, round_: int) -> None:
    told = {"framework": "torch", "call": "init_process_group", "rank": 0, "world_size": 2}
    told["place"] = f"tcp://a:{round_}"
    owner.text("declared", text_records.declared(told))
    owner.phase(ARRIVED, round_)
    owner.rounds = round_


def test_who_arrives_is_read_with_what_it_declares(tmp_path: Path) -> None:
    path = tmp_path / f"{os.getpid()}.box"
    owner = Box(str(path))
    arrive(owner, 1)
    ours = OpenBox(path)
    ours._texts = overtaken = _Overtaken(ours.map)
    overtaken.owner = owner
    seen = ours.read_snapshot()
    assert seen.declared is not None
    assert (seen.round, seen.declared.place) == (2, "tcp://a:2")
    ours.map.close()
