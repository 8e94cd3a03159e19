"""What is to be typed is told with its host, where a job is on several."""

from __future__ import annotations

import pytest

from allaboard.catalogue import catalogue
from allaboard.facts import JobView
from allaboard.facts.samples import job, member, waiting


@pytest.mark.parametrize(
    ("joined", "fix"), [(False, "kill -CONT 101"), (True, "on a: kill -CONT 101")]
)
def test_a_pid_of_a_job_on_several_hosts_is_told_with_its_host(joined: bool, fix: str) -> None:
    stopped = member(1, os_state="T", os_state_since=90.0)
    rule = next(e.rule for e in catalogue().entries if e.code == "HANG001")
    view: JobView = job(waiting(0), stopped, joined=joined)
    assert [claim.fix for claim in rule.check(view)] == [fix]
