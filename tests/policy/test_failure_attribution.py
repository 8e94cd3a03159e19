"""Whom a task fell with: the end of another, in its own error."""

from __future__ import annotations

import pytest

from allaboard.facts import Exit, Member, Raised, Who
from allaboard.facts.samples import ps_member
from allaboard.policy.restart.failure_attribution import EndedTask, find_lost_task

PS0, PS1 = Who(job="ps", index=0), Who(job="ps", index=1)
RESET = (
    "UNAVAILABLE: From /job:worker/replica:0/task:1: recvmsg:Connection reset by peer\n"
    "Additional GRPC error information from remote target /job:ps/replica:0/task:0"
)
EMPTY = "Could not find variable w1. This could mean that the variable was uninitialized."


def fallen(message: str, kind: str = "UnavailableError", at: float = 80.0) -> Member:
    raised = Raised(type=kind, message=message, raised_at=at)
    return ps_member("worker", 1, started_at=20.0, raised=raised, exit=Exit(ended_at=at, code=1))


@pytest.mark.parametrize(
    ("member", "gone", "who"),
    [
        (fallen(RESET), [EndedTask(PS0, 78.0), EndedTask(PS1, 79.0)], PS0),
        (fallen(RESET), [EndedTask(PS1, 79.0)], None),  # the one that it names is there
        (fallen(RESET), [EndedTask(PS0, 10.0)], None),  # that was before its time
        (fallen("Socket closed"), [EndedTask(PS1, 60.0), EndedTask(PS0, 78.0)], PS0),
        (fallen("Socket closed"), [EndedTask(Who(job="worker", index=0), 78.0)], None),
        (fallen(EMPTY, "FailedPreconditionError"), [EndedTask(PS0, 78.0)], PS0),
        (fallen("no such file", "FileNotFoundError"), [EndedTask(PS0, 78.0)], None),
        (ps_member("worker", 1, exit=Exit(ended_at=80.0, signal=9)), [EndedTask(PS0, 78.0)], None),
    ],
)
def test_whom_it_fell_with(member: Member, gone: list[EndedTask], who: Who | None) -> None:
    assert find_lost_task(member, gone) == who
