"""A lost peer is no riddle once it was told who failed or stands, here or on another host."""

from __future__ import annotations

import msgspec

from allaboard.clock import FakeClock
from allaboard.coordinator.finding_store import FindingStore
from allaboard.facts.samples import ended_member, sample_job
from allaboard.rules.engine.catalogue import load_catalogue
from allaboard.rules.engine.evaluate import run_rules

LOST = ("RuntimeError", "Connection closed by peer [10.77.0.2]:59819")


def test_who_lost_its_peer_is_a_riddle_only_until_the_failure_is_told() -> None:
    clock = FakeClock()
    alone = sample_job(ended_member(2, raised=LOST), launched=1)
    claims = list(run_rules(alone, load_catalogue().entries))
    (riddle,) = FindingStore(clock.utc).new_findings(clock.now, claims)
    assert riddle.rule == "EXIT005"
    cases = (
        ("EXIT002", None, False),
        ("HANG005", None, False),
        ("HANG005", "10:00", True),
        ("NUM005", None, True),
    )
    for rule, over, told in cases:
        ledger = FindingStore(clock.utc)
        entry = next(e for e in load_catalogue().entries if e.code == rule)
        ledger.add_reported_finding(
            msgspec.structs.replace(
                riddle,
                rule=rule,
                stage=entry.stage,
                certainty="certain",
                severity="error",
                over=over,
            )
        )
        assert bool(list(ledger.new_findings(clock.now, claims))) is told, rule
