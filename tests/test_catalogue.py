"""The tests that every rule brings along in its own file."""

from __future__ import annotations

import pytest

from allaboard.facts import JobView
from allaboard.formats.redaction import redact_text
from allaboard.rules.engine.catalogue import (
    RuleEntry,
    load_catalogue,
    load_families,
    load_job_rules,
    load_rule,
)
from allaboard.rules.engine.evaluate import run_rules

ENTRIES = load_catalogue().entries
FIRES = [
    pytest.param(e, facts, said, id=f"{e.code}-{name}")
    for e in ENTRIES
    for name, (facts, said) in e.rule.fires_on.items()
]
SILENT = [
    pytest.param(e, facts, id=f"{e.code}-{name}")
    for e in ENTRIES
    for name, facts in e.rule.silent_on.items()
]


def test_every_file_of_the_room_loads() -> None:
    assert load_catalogue().broken == ()
    assert ENTRIES


def test_a_running_job_is_judged_by_every_rule_that_reads_one() -> None:
    reads = {e.code for e in ENTRIES if issubclass(JobView, e.rule.reads)}
    assert reads <= {e.code for e in load_job_rules().entries} < {e.code for e in ENTRIES}


def test_only_the_rules_of_a_prefix_are_loaded() -> None:
    for prefixes in (("cfg",), ("log003",), ("cfg04", "slow"), ("l",)):
        codes = [e.code for e in load_families(prefixes).entries]
        assert codes == [e.code for e in ENTRIES if e.code.lower().startswith(prefixes)]


def test_a_rule_of_a_table_has_its_own_page() -> None:
    entry = load_rule("heartbeat-lost")
    assert (entry.code, entry.title.partition(",")[0]) == (
        "LOG002",
        "A worker stopped sending heartbeats",
    )


def test_codes_and_names_are_unique() -> None:
    assert len({e.code for e in ENTRIES}) == len(ENTRIES)
    assert len({e.name for e in ENTRIES}) == len(ENTRIES)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.code)
def test_a_rule_explains_itself(entry: RuleEntry) -> None:
    assert entry.rule.fires_on and entry.rule.silent_on
    assert "## Why it matters" in entry.page
    assert "## What to do" in entry.page
    assert bool(entry.rule.drill) != bool(entry.unstaged), "a drill, or why there is none"


@pytest.mark.parametrize(("entry", "facts", "said"), FIRES)
def test_a_rule_fires(entry: RuleEntry, facts: object, said: str) -> None:
    claims = [claim for _, claim in run_rules(facts, [entry])]
    assert [c.summary for c in claims[:1]] == [said]
    assert claims[0].evidence, "a finding without evidence convinces nobody"
    assert claims[0].fix, "a finding without a next step helps nobody"


@pytest.mark.parametrize(("entry", "facts", "said"), FIRES)
def test_a_finding_loses_nothing_as_a_secret(entry: RuleEntry, facts: object, said: str) -> None:
    for _, claim in run_rules(facts, [entry]):
        for text in (claim.summary, claim.fix, *map(str, claim.evidence)):
            assert redact_text(text) == text


NEEDING = [e for e in ENTRIES if e.rule.needs]
VIEWS = [
    view
    for e in ENTRIES
    for view in (*(facts for facts, _ in e.rule.fires_on.values()), *e.rule.silent_on.values())
    if isinstance(view, JobView)
]


@pytest.mark.parametrize("entry", NEEDING, ids=lambda e: e.code)
def test_a_rule_is_silent_without_what_it_needs(entry: RuleEntry) -> None:
    without = [v for v in VIEWS if not any(map(v.any_member_has, entry.rule.needs))]
    assert without
    assert [list(entry.rule.check(v)) for v in without] == [[] for _ in without]


@pytest.mark.parametrize(("entry", "facts"), SILENT)
def test_a_rule_is_silent_on_its_near_miss(entry: RuleEntry, facts: object) -> None:
    assert [c.summary for _, c in run_rules(facts, [entry])] == []
