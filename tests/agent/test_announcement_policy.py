"""Of several agents that a launcher starts on one host the first speaks."""

import pytest

from allaboard.agent.announcement_policy import AnnouncementPolicy
from allaboard.agent.options import Options
from allaboard.configuration.launcher_context import LauncherContext
from allaboard.configuration.local_rank import is_first_on_host
from allaboard.facts import Certainty, Finding, Severity, Stage

TORCHRUN = {"TORCHELASTIC_RUN_ID": "none"}


@pytest.mark.parametrize(
    ("environment", "first"),
    [
        ({}, True),
        ({"SLURM_LOCALID": "0"}, True),
        ({"SLURM_LOCALID": "3"}, False),
        ({"OMPI_COMM_WORLD_LOCAL_RANK": "1"}, False),
        ({"FLUX_TASK_LOCAL_ID": "1"}, False),
        ({"LOCAL_RANK": "1"}, True),  # by hand, in a terminal of its own
        ({"LOCAL_RANK": "1"} | TORCHRUN, False),
        ({"LOCAL_RANK": "0", "SLURM_LOCALID": "2"} | TORCHRUN, True),  # torchrun within a task
        ({"LOCAL_RANK": "", "SLURM_LOCALID": ""}, True),
    ],
)
def test_the_first_of_a_host_speaks(environment: dict[str, str], first: bool) -> None:
    assert is_first_on_host(environment) is first


def finding(rule: str, summary: str) -> Finding:
    return Finding(
        rule=rule, name="n", stage=Stage.RUNTIME, severity=Severity.ERROR, summary=summary,
        certainty=Certainty.CERTAIN, who=(), evidence=(), fix="", at="2026-01-01T00:00:00.000Z",
    )  # fmt: skip


def voice(environment: dict[str, str], attached: bool = False) -> AnnouncementPolicy:
    options = Options(joined=LauncherContext("j", 2, "", False), attached=attached)
    return AnnouncementPolicy(options, environment)


def test_beside_the_first_of_a_host_what_another_decides_is_not_told_again() -> None:
    one = voice({"SLURM_LOCALID": "1"})
    assert not one.shows_finding(
        finding("HANG001", "a"), decided_elsewhere=True
    ) and not one.shows_notes(decided_elsewhere=True)
    assert one.shows_finding(finding("HANG001", "b"), decided_elsewhere=False) and one.shows_notes(
        decided_elsewhere=False
    )


def test_the_first_of_a_host_tells_all_that_another_decides() -> None:
    one = voice({"SLURM_LOCALID": "0"}, attached=True)
    assert one.shows_finding(finding("NUM005", "of worker 1"), decided_elsewhere=True)
    assert one.shows_finding(finding("NUM005", "of worker 2"), decided_elsewhere=True)


def test_who_is_left_without_the_one_that_decided_tells_no_rule_again() -> None:
    one = voice({}, attached=True)
    assert one.shows_finding(finding("NUM005", "of worker 1, seen by all"), decided_elsewhere=True)
    assert not one.shows_finding(finding("NUM005", "of worker 2"), decided_elsewhere=False)
    assert one.shows_finding(finding("EXIT001", "of worker 2"), decided_elsewhere=False)
