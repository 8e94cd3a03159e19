"""The membership of a host that knows no other one yet."""

from __future__ import annotations

from allaboard.cluster.membership import Membership
from allaboard.cluster.membership_role import MeetingSettings
from allaboard.configuration.launcher_context import LauncherContext
from allaboard.protocol.commands import ShowNote


def _membership(rank: int, address: str) -> Membership:
    context = LauncherContext("job", rank, address, False, 2)
    return Membership(MeetingSettings(launcher_info=context), {}, lambda: None)


def test_while_nobody_leads_commands_stay_on_this_host() -> None:
    membership = _membership(1, "127.0.0.1:1")
    commands = [ShowNote(text="waiting for rank 0")]
    assert membership.route_commands(1.0, [*commands]) == commands
    assert membership.observe_events(1.0, []) == []
    assert membership.leader is None and not membership.is_linked
    assert membership.expected_agents == 2


def test_without_an_address_no_other_host_can_be_met() -> None:
    assert _membership(1, "127.0.0.1:1").may_meet_others
    assert not _membership(1, "").may_meet_others


def test_a_file_is_examined_before_its_members_are_reported() -> None:
    membership = _membership(0, "127.0.0.1:1")
    assert membership.has_surveyed("tcp://127.0.0.1:1")
    assert not membership.has_surveyed("file:///shared/rendezvous")
