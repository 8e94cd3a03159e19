"""What NUM005 tells to look at."""

from __future__ import annotations

from allaboard.facts import Loss, Member
from allaboard.facts.samples import sample_job, sample_member
from allaboard.rules.num005_not_finite import check


def losing(rank: int, step: int) -> Member:
    return sample_member(rank, step=step + 5, loss=Loss(bad=5, step=step, value="nan"))


def told(*members: Member) -> str:
    (claim,) = check(sample_job(*members))
    return claim.fix


def test_the_batch_of_the_rank_where_it_began() -> None:
    assert told(losing(0, 61), losing(1, 60), losing(2, 61)).startswith(
        "look at the batch of step 60 on rank 1;"
    )


def test_the_update_before_where_it_began_on_all_at_once() -> None:
    fix = told(*(losing(r, 60) for r in range(3)))
    assert fix.startswith("look at the update of step 59") and "batch" not in fix


def test_no_update_was_before_the_first_step() -> None:
    assert told(*(losing(r, 1) for r in range(3))).startswith("look at the data")
