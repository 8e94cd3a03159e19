"""How much it matters that a rank waits for a file lock depends on who holds it."""

from __future__ import annotations

import pytest

from allaboard.facts import Frame, LockWait, Severity
from allaboard.facts.samples import USER, sample_member, sample_stack, stalled_job, waiting_member
from allaboard.rules import hang004_file_lock

ASKS = Frame("/v/lib/python3.11/site-packages/filelock/_api.py", 300, "acquire")


@pytest.mark.parametrize(
    ("holder", "severity"),
    [
        pytest.param(100, Severity.ERROR, id="a rank that waits for this one in a collective"),
        pytest.param(77, Severity.ERROR, id="a process outside the job"),
        pytest.param(
            102, Severity.WARNING, id="a rank that is elsewhere, and may be preparing data"
        ),
    ],
)
@pytest.mark.parametrize("polls", [False, True])
def test_a_lock_of_a_rank_that_waits_for_nobody_is_no_error(
    holder: int, severity: Severity, polls: bool
) -> None:
    view = stalled_job(
        waiting_member(0),
        sample_member(1, stack=sample_stack(ASKS, USER)),
        sample_member(2, stack=sample_stack(USER)),
        lock_waits=(LockWait(101, (holder,), "/tmp/prep.lock", polls=polls),),
    )
    (claim,) = hang004_file_lock.check(view)
    assert [w.rank for w in claim.who] == [1]
    assert claim.severity is severity
