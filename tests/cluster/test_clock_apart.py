"""How far a member's clock is from ours: of late, since a suspended host's stands meanwhile."""

from __future__ import annotations

import pytest

from allaboard.cluster.transport import inbound_handshake
from allaboard.cluster.transport.member_connection import MemberConnection
from allaboard.cluster.transport.wire import Hello


def test_a_host_that_was_suspended_is_dated_right_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(inbound_handshake.time, "monotonic", lambda: clock[0])
    hello = Hello(
        version=1,
        job="",
        host="h1",
        rank=1,
        pid=1,
        data="",
        nonce="",
        proof="",
        mono=900.0,
        wall=0.0,
    )
    one = MemberConnection(None, hello, 1, "", (0.0, 0.0))  # type: ignore[arg-type]
    assert one.clock_offset == 100.0

    def heard(at: float, late: float, suspended: float = 0.0) -> float:
        clock[0] = at
        one.update_offset(at - 100.0 - late - suspended)
        return one.clock_offset

    assert heard(1001.0, 0.5) == 100.0  # what came late says less
    assert heard(1002.0, -0.2) == pytest.approx(99.8)
    for at in range(1003, 1100):
        assert heard(float(at), 0.3) < 100.31
    for at in range(1200, 1300):  # for 100 s its clock stood
        heard(float(at), 0.0, suspended=100.0)
    assert one.clock_offset == pytest.approx(200.0)
