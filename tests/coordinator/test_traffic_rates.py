"""Rates between tasks from what the kernel counted."""

from __future__ import annotations

import pytest

from allaboard.coordinator.trackers.traffic_rates import WINDOW_S, TrafficRates
from allaboard.facts import Flow, Flows


def look(received: int, sent: int, local: str = "a:1", **more: float) -> tuple[Flows, ...]:
    flow = Flow(local=local, remote="b:9", received=received, sent=sent, **more)  # type: ignore[arg-type]
    return (Flows("ps:0", (flow,)),)


def test_rates_are_of_the_last_seconds_and_sums_of_all() -> None:
    pairs = TrafficRates()
    for second in range(31):
        pairs.add_flows(
            float(second), look(1000 * second, 500 * second, busy=0.5 * second, rtt=0.02)
        )
    (pair,) = pairs.pairs
    assert pairs.span == WINDOW_S
    assert (pair.task, pair.connections) == ("ps:0", 1)
    assert (pair.received, pair.sent, pair.busy) == pytest.approx((1000, 500, 0.5))
    assert (pair.received_all, pair.sent_all, pair.rtt) == (30000, 15000, 0.02)


def test_a_connection_that_is_made_anew_counts_from_its_first_byte() -> None:
    pairs = TrafficRates()
    pairs.add_flows(0.0, look(1000, 0))
    pairs.add_flows(1.0, look(300, 0, local="a:2"))
    (pair,) = pairs.pairs
    assert (pair.received_all, pair.received, pair.connections) == (1300, 300, 1)


def test_one_that_is_gone_keeps_its_sums() -> None:
    pairs = TrafficRates()
    pairs.add_flows(0.0, look(1000, 70))
    pairs.add_flows(1.0, ())
    (pair,) = pairs.pairs
    assert (pair.connections, pair.received_all, pair.sent_all, pair.received) == (0, 1000, 70, 0)


def test_nothing_measured() -> None:
    assert TrafficRates().pairs == ()
    pairs = TrafficRates()
    pairs.add_flows(0.0, look(1, 1))
    pairs.restart_window()
    assert pairs.pairs == ()


def test_what_a_way_takes_is_told_of_most_looks_and_not_of_one() -> None:
    pairs = TrafficRates()
    for second, seen in enumerate((1e6, 0.6e6, 72e6, 1e6, 0.6e6)):
        pairs.add_flows(float(second), look(1000 * second, 0, delivers=seen))
    assert pairs.pairs[0].delivers == 1e6


def test_what_a_way_takes_is_not_told_by_a_connection_that_only_asks() -> None:
    pairs = TrafficRates()
    for second in range(3):
        asks = Flow(
            local="a:1", remote="b:9", received=9000 * second, sent=10 * second, delivers=72e6
        )
        gives = Flow(local="a:2", remote="b:9", sent=1000 * second, delivers=1e6)
        pairs.add_flows(float(second), (Flows("ps:0", (asks, gives)),))
    assert pairs.pairs[0].delivers == 1e6


def test_one_that_is_gone_keeps_its_round_trip() -> None:
    pairs = TrafficRates()
    flow = Flow(local="a:1", remote="b:9", sent=1000, rtt=0.013)
    pairs.add_flows(0.0, (Flows("chief:0", (flow,)),))
    pairs.add_flows(1.0, ())
    assert [(p.task, p.connections, p.rtt) for p in pairs.pairs] == [("chief:0", 0, 0.013)]
