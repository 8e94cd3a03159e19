"""A host that is silent, and one that is away, are told apart by time: who is away is known first."""

from __future__ import annotations

from allaboard.cluster.connections.silence_detector import CHECK_INTERVAL_S
from allaboard.cluster.transport.tcp_keepalive import HOST_AWAY_AFTER_S
from allaboard.coordinator.event_recorder import RECONNECT_GRACE_S
from allaboard.rules.hang017_host_silent import MIN_SILENT_S


def test_a_host_is_known_to_be_away_before_it_could_be_said_to_answer() -> None:
    assert HOST_AWAY_AFTER_S + CHECK_INTERVAL_S + RECONNECT_GRACE_S < MIN_SILENT_S
