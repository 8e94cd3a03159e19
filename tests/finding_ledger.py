"""A store of findings and the rules whose claims it is told, for tests."""

from __future__ import annotations

from allaboard.coordinator.finding_store import FindingStore
from allaboard.rules.engine.catalogue import RuleEntry, load_catalogue


def entry(code: str) -> RuleEntry:
    found = load_catalogue().find_rule(code)
    assert found is not None
    return found


def ledger() -> FindingStore:
    return FindingStore(lambda at: f"2026-01-01T00:00:{at:06.3f}Z")
