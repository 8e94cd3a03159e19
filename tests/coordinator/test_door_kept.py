"""The door of a roll call that has failed, where the framework's own timeout decides."""

from __future__ import annotations

import pytest

from allaboard.analysis.roll_call.roll_call import find_roll_calls
from allaboard.coordinator.gate import CALLERS_GRACE_S, Gate
from allaboard.coordinator.multi_host_state import MultiHostState
from allaboard.facts import Member, Phase
from allaboard.facts.samples import arrived_member, ended_member, gathering_job
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.protocol.commands import OpenGate
from allaboard.protocol.events import RoleTaken
from allaboard.rules.engine.catalogue import load_catalogue
from allaboard.rules.engine.evaluate import run_rules

NOW = 100.0
DIED = ended_member(
    1, code=1, ended_at=95.0, member={"phase": Phase.IMPORTED, "declared": None, "round": 0}
)


@pytest.mark.parametrize(("others", "waits"), [((), True), ((arrived_member(2),), False)])
def test_it_is_kept_until_who_was_never_heard_of_may_have_come(
    others: tuple[Member, ...], waits: bool
) -> None:
    crossing = MultiHostState("a", joined=True)
    crossing.apply_event(RoleTaken(leads=True))
    gate = Gate(0.0, EndPolicy(only_reports=True), crossing, {})
    view = gathering_job(arrived_member(0), DIED, *others, now=NOW)
    claims = [c for e, c in run_rules(view, load_catalogue().entries) if e.code == "JOIN003"]
    assert claims

    def opens(now: float) -> bool:
        return any(
            isinstance(c, OpenGate)
            for c in gate.open_when_complete(now, find_roll_calls(view), claims)
        )

    assert opens(NOW) is not waits
    assert opens(NOW + CALLERS_GRACE_S - 0.1) is not waits
    assert opens(NOW + CALLERS_GRACE_S)
