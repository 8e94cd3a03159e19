"""What another host has told of several is not told once more of one of them."""

from __future__ import annotations

import pytest

from allaboard.coordinator.finding_store import FindingStore
from allaboard.facts import Claim, Finding, Who
from allaboard.facts.samples import sample_member
from allaboard.rules.engine.evaluate import make_finding
from finding_ledger import entry, ledger


def claim(*ranks: int) -> Claim:
    return Claim(summary="they raised ValueError at train.py:41", who=tuple(map(who, ranks)))


def who(rank: int) -> Who:
    return sample_member(rank).who


def finding(code: str, *ranks: int) -> Finding:
    return make_finding(entry(code), claim(*ranks))


def new(kept: FindingStore, code: str, *ranks: int) -> int:
    return len(list(kept.new_findings(10.0, [(entry(code), claim(*ranks))])))


def test_who_was_named_with_others_is_not_named_again() -> None:
    kept = ledger()
    kept.add_reported_finding(finding("EXIT002", 1, 2))
    assert new(kept, "EXIT002", 1) == 0
    assert new(kept, "EXIT002", 2) == 0
    assert [f.who for f in kept.findings] == [(who(1), who(2))]


@pytest.mark.parametrize(
    ("code", "ranks"), [("EXIT002", (3,)), ("EXIT002", (1, 3)), ("EXIT001", (1,))]
)
def test_who_was_not_named_so_is(code: str, ranks: tuple[int, ...]) -> None:
    kept = ledger()
    kept.add_reported_finding(finding("EXIT002", 1, 2))
    assert new(kept, code, *ranks) == 1


def test_a_claim_of_its_own_that_narrows_is_told() -> None:
    """Here it is seen that the other one does not stand any more."""
    kept = ledger()
    assert new(kept, "HANG005", 1, 2) == 1
    assert new(kept, "HANG005", 1) == 1


def test_what_passes_may_come_again() -> None:
    kept = ledger()
    kept.add_reported_finding(finding("HANG005", 1, 2))
    assert new(kept, "HANG005", 1) == 1


@pytest.mark.parametrize("elsewhere", [True, False])
def test_how_it_ended_before_init_is_told_once(elsewhere: bool) -> None:
    kept = ledger()
    if elsewhere:
        kept.add_reported_finding(finding("JOIN003", 1))
    else:
        assert new(kept, "JOIN003", 1) == 1
    assert new(kept, "EXIT002", 1) == 0
    assert new(kept, "EXIT002", 2) == 1
