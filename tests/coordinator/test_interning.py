"""What members declare is shared by its content, and nothing of it is lost."""

from __future__ import annotations

from allaboard.coordinator.trackers.interning import InternPool
from allaboard.facts import Declared


def test_what_is_shared_is_all_that_was_declared() -> None:
    told = Declared(
        framework="torch",
        call="init_process_group",
        rank=1,
        world_size=2,
        job="chief",
        index=3,
        place="tcp://h0:29500",
        cluster={"chief:0": "h0:1"},
        backend="gloo",
        origin="RANK",
        local=False,
        hold=False,
        bind="0.0.0.0",
        interface="eth1",
        again=True,
    )
    usual = Declared(framework="", call="", rank=0, world_size=0)
    assert all(getattr(told, n) != getattr(usual, n) for n in Declared.__struct_fields__)
    assert InternPool().intern_declared(told) == told
