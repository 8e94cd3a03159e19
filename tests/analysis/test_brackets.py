"""Addresses of IPv6 in the commands that findings give."""

from __future__ import annotations

import msgspec

from allaboard.analysis.roll_call.rendezvous_attempt import example_attempt
from allaboard.contracts import Rule
from allaboard.facts import Answer, Claim, JobView
from allaboard.rules import net001_name_not_found, net_unreached_address


def _claimed(rule: Rule, view: JobView, address: str, met: str = "") -> Claim:
    assert view.call is not None
    call = msgspec.structs.replace(view.call, address=address, met=met)
    (claim,) = rule.check(msgspec.structs.replace(view, call=call))
    assert isinstance(claim, Claim)
    return claim


def test_a_command_takes_it_without_brackets() -> None:
    view = example_attempt(Answer.UNREACHABLE, said="No route to host")
    unreachable = net_unreached_address.RULES["net004_unreachable"]
    claim = _claimed(unreachable, view, "[fd77::1]:29500", met="[fd77::1]:29500")
    assert "ip route get fd77::1 " in claim.fix
    assert "rendezvous address [fd77::1]:29500" in claim.summary


def test_brackets_in_master_addr_are_to_go() -> None:
    view = example_attempt(Answer.NO_NAME, 3.0, "Name or service not known")
    claim = _claimed(net001_name_not_found.RULE, view, "[[fd77::1]]:29500")
    assert "cannot resolve [fd77::1]," in claim.summary
    assert claim.fix.startswith("export MASTER_ADDR=fd77::1 ")
