"""Whether all hosts can be started again together."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.facts import Cause, Outcome, RoundEnd
from allaboard.policy.restart.attempt_restart import decide_after_round
from allaboard.policy.restart.multi_host import RoundHosts, lost_leader_reason, restart_hindrance
from allaboard.policy.restart.restart_policy import NoRestart, Restart, RestartPolicy

ALL = RoundHosts(expected_agents=4, connected_agents=4)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, ""),
        ({"expected_agents": 0, "connected_agents": 2}, ""),
        (
            {"connected_agents": 3},
            "3 of 4 agents are connected: the workers of the others cannot be",
        ),
        ({"lost_hosts": ("h2",)}, "h2 is lost: the workers there cannot be restarted from here"),
        ({"lost_hosts": ("h2", "h3")}, "h2, h3 are lost: "),
        (
            {"lost_hosts": ("h2",), "hosts_without_restart": ("h2",)},
            "--on-failure restart is not given on h2",
        ),
        (
            {"unwatched_host": "10.0.0.9 runs without allaboard"},
            "10.0.0.9 runs without allaboard: it cannot",
        ),
        (
            {"meeting_place": "file:///shared/rdzv"},
            "the workers meet through file:///shared/rdzv, which still holds",
        ),
        ({"meeting_place": "tcp://h0:29500"}, ""),
    ],
)
def test_what_is_in_the_way(changes: dict[str, object], says: str) -> None:
    said = restart_hindrance(msgspec.structs.replace(ALL, **changes))
    assert said.startswith(says) and bool(said) == bool(says)


@pytest.mark.parametrize("why", ["", lost_leader_reason("h0:29500")])
def test_a_round_follows_only_where_all_can_take_part(why: str) -> None:
    ended = RoundEnd(
        number=0,
        outcome=Outcome.FAILED,
        reason="worker 1 failed; ending the others",
        seconds=20.0,
        steps=60,
        cause=Cause(who="worker 1", what="was killed by SIGKILL", steps=60),
    )
    answer = decide_after_round([ended], RestartPolicy(allowed=True), hindrance=why)
    assert answer == NoRestart(why) if why else isinstance(answer, Restart)
