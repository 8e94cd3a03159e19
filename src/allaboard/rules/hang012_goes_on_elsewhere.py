"""A rank continues elsewhere while other ranks of its group wait for it in a collective.

## Why it matters
A collective completes only when every rank of the group has called it. A rank that skipped it (another
branch, a swallowed exception) trains on alone, and the others of its group wait forever, or until it calls
much later.

The finding is reported as soon as that rank has made far more steps without such a call than it ever made
between two of them; if that is unknown, after 15 s and a hundred steps of waiting.

## What to do
Look at the line where they wait, and at what keeps the other rank from reaching it. If that rank is meant to
call much later (one rank collects what others produce at their own pace), this is not a fault.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.collectives.collective_mismatch import describe_group
from allaboard.analysis.member_names import conjugate_verb, name_members
from allaboard.analysis.stalls.stalled_members import find_missed_calls
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Op, Severity, Unused
from allaboard.facts.samples import member_with_calls, sample_job, sample_signature

MIN_WAIT_S = 15.0
"""Seconds that a rank must have waited, and ..."""
MIN_WAIT_STEPS = 100.0
"""... how many of the job's median steps it must have waited, before it is reported."""
MIN_COMPLETED_CALLS = 3
"""Calls that the group must have completed: a group that has just been created has no rhythm yet."""
RHYTHM_FACTOR = 3
"""Factor over the most steps between two calls beyond which a rank has left its rhythm."""


def check(view: JobView) -> Iterator[Claim]:
    min_wait = max(MIN_WAIT_S, MIN_WAIT_STEPS * (view.median_step or 0.0))
    reported = set()
    for waiting_member, key, absent_members in find_missed_calls(view):
        assert waiting_member.op is not None
        if (
            waiting_member.op.position <= MIN_COMPLETED_CALLS
            or (key, waiting_member.op.position) in reported
        ):
            continue
        if view.now - waiting_member.op.since < min_wait:
            absent_members = tuple(
                m for m in absent_members if _steps_without_call(m, key) is not None
            )
        if absent_members:
            reported.add((key, waiting_member.op.position))
            yield _claim(view, waiting_member, key, absent_members)


def _steps_without_call(member: Member, key: tuple[str, int]) -> Unused | None:
    """Return the steps that it has made without a call of this group, if they are too many for its rhythm."""
    return next(
        (u for u in member.unused if u.key == key and u.steps >= RHYTHM_FACTOR * u.most), None
    )


def _claim(
    view: JobView, waiting_member: Member, key: tuple[str, int], absent_members: tuple[Member, ...]
) -> Claim:
    assert waiting_member.op is not None
    site = next(
        (
            s.last_call.site
            for s in waiting_member.groups
            if s.key == key and s.last_call is not None
        ),
        None,
    )
    location = f" at {site}" if site is not None else ""
    steps_text = "; ".join(_describe_steps(m, key) for m in absent_members[:4])
    group = describe_group(view, key)
    return Claim(
        summary=f"{name_members(absent_members)} {conjugate_verb('continue', absent_members)} without "
        f"call {waiting_member.op.position} of {group}, in which rank {waiting_member.who.rank} waits",
        who=tuple(m.who for m in absent_members),
        evidence=(
            Evidence(
                f"rank {waiting_member.who.rank} waits in {waiting_member.op.name}{location} "
                f"for {view.now - waiting_member.op.since:.0f} s",
                "black box",
            ),
            Evidence(steps_text, "black box"),
        ),
        fix=f"see what keeps rank {absent_members[0].who.rank} from "
        + (f"{site.file}:{site.line}" if site is not None else waiting_member.op.name),
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=waiting_member.op.since,
    )


def _describe_steps(member: Member, key: tuple[str, int]) -> str:
    unused = _steps_without_call(member, key)
    rhythm = ""
    if unused is not None:
        rhythm = f", {unused.steps} steps after its last call in the group (before, at most {unused.most})"
    return f"rank {member.who.rank} is at step {member.step}{rhythm}"


_ONE = sample_signature()
_FIVE = (_ONE,) * 5
_IN = {"op": Op("all_reduce", 41, 70.0, "0", 5), "moved_at": 70.0}
_SOON = {"op": Op("all_reduce", 41, 96.0, "0", 5), "moved_at": 96.0}


def _with_new_group(member: Member, number: int) -> Member:
    """Return the member as if it had only begun to use the group."""
    op = msgspec.structs.replace(member.op, position=number) if member.op is not None else None
    return msgspec.structs.replace(member, op=op)


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("op",),
    fires_on={
        "a rank has made 150 steps without a call that it used to make every other step": (
            sample_job(
                member_with_calls(0, *_FIVE, size=2, **_SOON),
                member_with_calls(
                    1, *_FIVE[:4], size=2, moved_at=99.9, unused=(Unused("0", 1, 150, 2),)
                ),
            ),
            "worker 1 continues without call 5 of the default group, in which rank 0 waits",
        ),
        "a rank trains on while the other has waited in a collective for 30 seconds": (
            sample_job(
                member_with_calls(0, *_FIVE, size=2, **_IN),
                member_with_calls(1, *_FIVE[:4], size=2, moved_at=99.9),
            ),
            "worker 1 continues without call 5 of the default group, in which rank 0 waits",
        ),
    },
    silent_on={
        "a rank that made up to 90 steps between two calls before has now made 150": sample_job(
            member_with_calls(0, *_FIVE, size=2, **_SOON),
            member_with_calls(
                1, *_FIVE[:4], size=2, moved_at=99.9, unused=(Unused("0", 1, 150, 90),)
            ),
        ),
        "the rank has left out calls of another group, not of the one in which the other waits": sample_job(
            member_with_calls(0, *_FIVE, size=2, **_SOON),
            member_with_calls(
                1, *_FIVE[:4], size=2, moved_at=99.9, unused=(Unused("1", 1, 150, 2),)
            ),
        ),
        "a rank has waited for the other for 10 seconds": sample_job(
            member_with_calls(
                0, *_FIVE, size=2, **(_IN | {"op": Op("all_reduce", 41, 90.0, "0", 5)})
            ),
            member_with_calls(1, *_FIVE[:4], size=2, moved_at=99.9),
        ),
        "the rank for which the other waits makes no progress": sample_job(
            member_with_calls(0, *_FIVE, size=2, **_IN),
            member_with_calls(1, *_FIVE[:4], size=2, moved_at=70.0),
        ),
        "a rank waits in the second call of a new group": sample_job(
            _with_new_group(member_with_calls(0, *_FIVE[:2], size=2, **_IN), 2),
            member_with_calls(1, _ONE, size=2, moved_at=99.9),
        ),
        "a rank has waited for 30 seconds in a job whose steps take 2 seconds": sample_job(
            member_with_calls(0, *_FIVE, size=2, **_IN),
            member_with_calls(1, *_FIVE[:4], size=2, moved_at=99.9),
            median_step=2.0,
        ),
    },
    passes=True,
    drill=("alone",),
)
