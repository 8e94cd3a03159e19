"""A signal that Python has no name for ends no rule."""

from __future__ import annotations

import signal

import pytest

from allaboard.analysis.parameter_servers.task_roles import describe_exit
from allaboard.facts import Exit
from allaboard.facts.samples import ended_member, sample_job, waiting_member
from allaboard.facts.signal_name import signal_name
from allaboard.rules.exit001_killed import RULE


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (9, "SIGKILL"),
        (signal.SIGRTMIN + 1, "SIGRTMIN+1"),
        (int(signal.SIGRTMAX), "SIGRTMAX"),
        (33, "signal 33"),
        (70, "signal 70"),
    ],
)
def test_every_number_has_a_name(number: int, name: str) -> None:
    assert signal_name(number) == name
    assert name in describe_exit(Exit(ended_at=1.0, signal=number))


def test_who_was_ended_by_a_real_time_signal_is_named() -> None:
    (claim,) = RULE.check(
        sample_job(waiting_member(0), ended_member(1, signal=signal.SIGRTMIN + 1))
    )
    assert "worker 1" in claim.summary and "SIGRTMIN+1" in claim.summary
