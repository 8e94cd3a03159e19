"""A worker retries to save a checkpoint again and again while the others wait for it.

## Why it matters
On a full disk, or one that has become read-only, every attempt fails. A program that retries without a limit
never reaches its next step, and its peers block in their next collective.

## What to do
Check whether the disk that it saves to is full (`df -h`), gone, or read-only. Limit the retries, and let all
ranks continue without this checkpoint, or end all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.stacks.example_awaited import example_awaited
from allaboard.analysis.stalls.failing_checkpoint import (
    NOT_SAVED_NOTE,
    FailingCheckpoint,
    find_failing_checkpoint,
)
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.analysis.stalls.stuck_members import StuckReason, find_stuck_members
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member
from allaboard.facts.samples import USER, sample_member, sample_stack


def check(view: JobView) -> Iterator[Claim]:
    for stuck in find_stuck_members(view):
        tries = find_failing_checkpoint(view, stuck.member)
        if stuck.reason is StuckReason.CHECKPOINT and tries is not None:
            yield _claim(view, stuck.member, tries, stuck.waiting)


def _claim(
    view: JobView, member: Member, tries: FailingCheckpoint, peers_evidence: Evidence
) -> Claim:
    kind = tries.error.partition(":")[0]
    return Claim(
        summary=f"{member.who.name} keeps retrying to save a checkpoint, which fails with {kind}, while the "
        "others wait for it",
        who=(member.who,),
        evidence=(
            Evidence(
                f"{tries.failures_in_a_row} times in a row, the last {tries.error}", tries.location
            ),
            peers_evidence,
        ),
        fix="check whether the disk that it saves to is full (df -h), gone or read-only; limit the retries "
        f"at {tries.location.partition(' in ')[0]}, and let all ranks continue without it",
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


_FULL = {
    NOT_SAVED_NOTE: "30 RuntimeError: [enforce fail] . unexpected pos 704 at train.py:77 in save"
}

RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "a checkpoint that has failed 30 times in a row, for more than a minute": (
            example_awaited(
                sample_member(1, stack=sample_stack(USER), notes=_FULL, io=6e6), progress_at=30.0
            ),
            "worker 1 keeps retrying to save a checkpoint, which fails with RuntimeError, while the "
            "others wait for it",
        )
    },
    silent_on={
        "a checkpoint that has failed 30 times in a row, for 10 seconds": example_awaited(
            sample_member(1, stack=sample_stack(USER), notes=_FULL, io=6e6)
        ),
        "a checkpoint that has failed once": example_awaited(
            sample_member(
                1,
                stack=sample_stack(USER),
                notes={NOT_SAVED_NOTE: "1 OSError: no at a.py:7 in f"},
                io=6e6,
            ),
            progress_at=30.0,
        ),
    },
    passes=True,
    drill=("disk-stays-full",),
)
