"""What an agent may report to the leader: what it saw, and never what is decided of the job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from allaboard.cluster.connections.foreign_events import translate_event
from allaboard.cluster.transport.member_connection import MemberConnection
from allaboard.facts import Interruption, Outcome
from allaboard.protocol.events import (
    CoordinatorChanged,
    Event,
    GateOpened,
    InterruptionReported,
    JobEndOrdered,
    ProcessExited,
)
from allaboard.protocol.process_keys import process_key

MEMBER = cast(MemberConnection, SimpleNamespace(clock_offset=100.0, number=3))


@pytest.mark.parametrize(
    "event",
    [
        CoordinatorChanged(is_local=False),
        GateOpened(opened_at=1.0),
        JobEndOrdered(outcome=Outcome.FAILED, reason="a stranger says so"),
        InterruptionReported(interruption=Interruption(host="h1", signal=15, interrupted_at=1.0)),
    ],
)
def test_a_decision_of_another_agent_is_no_business_of_the_leader(event: Event) -> None:
    assert translate_event(event, MEMBER) is None


def test_what_it_saw_is_taken_with_our_clock_and_our_key() -> None:
    event = translate_event(ProcessExited(pid=7, exited_at=1.0, code=1), MEMBER)
    assert event == ProcessExited(pid=process_key(3, 7), exited_at=101.0, code=1)
