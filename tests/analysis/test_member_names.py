"""What is to be typed is told with its host, where a job is on several."""

from __future__ import annotations

import pytest

from allaboard.analysis.member_names import conjugate_verb
from allaboard.facts import JobView
from allaboard.facts.samples import sample_job, sample_member, waiting_member
from allaboard.rules.engine.catalogue import load_catalogue


@pytest.mark.parametrize(
    ("joined", "fix"), [(False, "kill -CONT 101"), (True, "on a: kill -CONT 101")]
)
def test_a_pid_of_a_job_on_several_hosts_is_told_with_its_host(joined: bool, fix: str) -> None:
    stopped = sample_member(1, os_state="T", os_state_since=90.0)
    rule = next(e.rule for e in load_catalogue().entries if e.code == "HANG001")
    view: JobView = sample_job(waiting_member(0), stopped, joined=joined)
    assert [claim.fix for claim in rule.check(view)] == [fix]


@pytest.mark.parametrize(
    ("waiting_ranks", "said"), [((0,), "rank 0 waits in"), ((0, 2), "ranks 0,2 wait in")]
)
def test_a_verb_agrees_with_the_names_before_it(waiting_ranks: tuple[int, ...], said: str) -> None:
    stopped = sample_member(1, os_state="T", os_state_since=90.0)
    rule = next(e.rule for e in load_catalogue().entries if e.code == "HANG001")
    view: JobView = sample_job(*(waiting_member(rank) for rank in waiting_ranks), stopped)
    (claim,) = rule.check(view)
    assert any(said in e.observed for e in claim.evidence), claim.evidence


def test_a_verb_is_formed_by_the_number_of_its_subjects() -> None:
    assert [conjugate_verb(verb, [1]) for verb in ("wait", "go")] == ["waits", "goes"]
    assert [conjugate_verb(verb, [1, 2]) for verb in ("wait", "go")] == ["wait", "go"]
