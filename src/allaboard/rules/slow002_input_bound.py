"""All workers spend most of every step waiting for data.

This is not one slow worker: the input pipeline does not keep up on any of them. Medians of steps are
compared, so the first batch and the change of an epoch do not count: over about four seconds if waiting takes
70 % of a step, over ten if it takes 60 %.

## Why it matters
The devices are idle for the share that the finding gives; a faster model or more workers would change
nothing.

## What to do
Set `num_workers` of the DataLoader above 0, so that data is prepared while the step runs. These also help:
decoding and augmentation done once beforehand; larger files instead of many small ones; a local copy instead
of a mount; `persistent_workers=True` if epochs are short.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from allaboard.analysis.performance.stragglers import (
    find_lag,
    recently_stepping_members,
    stepping_members,
)
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Pace, Severity
from allaboard.facts.samples import sample_job, sample_member

MIN_SHARE = 0.6
"""Share of a step that every member must wait for data, ..."""
MIN_RECENT_SHARE = 0.7
"""... the share in the steps of the last seconds alone, ..."""
MIN_WAIT_S = 0.01
"""... and the least time (s) of a step."""
FIXES = {
    "torch": "increase num_workers of the DataLoader, with persistent_workers=True; preprocess data "
    "beforehand",
    "tensorflow": "dataset.map(..., num_parallel_calls=tf.data.AUTOTUNE), .prefetch(tf.data.AUTOTUNE); "
    "preprocess data beforehand",
}
"""Advice by framework."""


def check(view: JobView) -> Iterator[Claim]:
    if find_lag(view) is None and _covers_whole_job(view):
        members = _members_waiting_for_data(view)
        if members:
            yield _claim(members)


def _members_waiting_for_data(view: JobView) -> tuple[Member, ...]:
    """Return the members if all of them wait for data, else ()."""
    if _all_wait(stepping_members(view), MIN_SHARE):
        return stepping_members(view)
    # Extracting the last seconds of thousands of members is expensive: do it only if all of them may wait.
    if all(m.recent_pace.input >= MIN_WAIT_S for m in view.alive) and _all_wait(
        recently_stepping_members(view), MIN_RECENT_SHARE
    ):
        return recently_stepping_members(view)
    return ()


def _all_wait(members: tuple[Member, ...], share: float) -> bool:
    return bool(members) and all(
        m.pace.input >= max(MIN_WAIT_S, share * m.pace.step) for m in members
    )


def _covers_whole_job(view: JobView) -> bool:
    """Return True if this view covers the whole job: a host that has lost the leader sees only its own
    part."""
    world_sizes = [m.declared.world_size for m in view.members if m.declared is not None]
    return not view.joined or len(view.members) >= max(world_sizes, default=0)


def _claim(members: tuple[Member, ...]) -> Claim:
    share = median(m.pace.input / m.pace.step for m in members)
    step = median(m.pace.step for m in members)
    every = "every member spends" if len(members) > 1 else "it spends"
    return Claim(
        summary=f"the job is input-bound: {every} {share:.0%} of its time waiting for data",
        who=tuple(m.who for m in members[:4]),
        evidence=(
            Evidence(
                ", ".join(f"rank {m.who.rank} {1000 * m.pace.input:.0f} ms" for m in members[:8])
                + f" of {1000 * step:.0f} ms a step",
                f"black box, medians of {members[0].pace.steps} steps "
                f"over {members[0].pace.covered_seconds:.0f} s",
            ),
        ),
        fix=FIXES["tensorflow" if "tensorflow" in members[0].notes else "torch"],
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _stepping(rank: int, data: float, step: float = 0.1, sync: float = 0.01) -> Member:
    return sample_member(rank, pace=Pace(steps=63, step=step, input=data, sync=sync, span=15.0))


def _changed(rank: int, data: float) -> Member:
    """Return a member whose data was on time until four seconds ago."""
    return sample_member(
        rank,
        pace=Pace(steps=300, step=0.05, input=0.001, sync=0.01, span=20.0),
        recent_pace=Pace(steps=40, step=0.1, input=data, sync=0.01, span=3.2),
    )


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "all workers wait for data 80 % of each step": (
            sample_job(*(_stepping(r, 0.08) for r in range(3))),
            "the job is input-bound: every member spends 80% of its time waiting for data",
        ),
        "for four seconds, all workers have waited for data 85 % of each step": (
            sample_job(*(_changed(r, 0.085) for r in range(3))),
            "the job is input-bound: every member spends 85% of its time waiting for data",
        ),
        "the only worker waits for data 70 % of each step": (
            sample_job(_stepping(0, 0.07), launched=1),
            "the job is input-bound: it spends 70% of its time waiting for data",
        ),
    },
    silent_on={
        "one host of several that cannot see the others": sample_job(
            sample_member(1, pace=Pace(steps=63, step=0.1, input=0.08, sync=0.01, span=15.0)),
            joined=True,
        ),
        "one of three workers gets its data in time, and waits for the other two": sample_job(
            _stepping(0, 0.01, sync=0.08), _stepping(1, 0.08), _stepping(2, 0.08)
        ),
        "for four seconds, all workers have waited for data 65 % of each step": sample_job(
            *(_changed(r, 0.065) for r in range(3))
        ),
        "all workers wait for data half of each step": sample_job(
            *(_stepping(r, 0.05) for r in range(3))
        ),
        "steps of 5 ms": sample_job(*(_stepping(r, 0.004, step=0.005) for r in range(3))),
    },
    passes=True,
    drill=("slow-data-everywhere",),
    relations=Relations(measured=True),
)
