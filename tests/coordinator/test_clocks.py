"""The clocks of all hosts are compared, also of those that agree with ours to the millisecond."""

from __future__ import annotations

from allaboard.coordinator.multi_host_state import MultiHostState
from allaboard.protocol.events import AgentConnected


def test_a_clock_like_ours_counts_for_the_majority() -> None:
    crossing = MultiHostState("h0", joined=True)
    for agent, ahead in enumerate((0.0, 0.0, 300.0, 0.0)):
        crossing.apply_event(
            AgentConnected(
                agent=agent, host=f"h{agent}", probe_address="", rank=agent, clock_ahead_s=ahead
            )
        )
    assert crossing.view_fields()["clocks"] == {"h1": 0.0, "h2": 300.0, "h3": 0.0}
