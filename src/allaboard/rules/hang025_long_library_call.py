"""A worker computes in one library call for more than a minute while the others wait for it.

## Why it matters
A regular expression that backtracks, a solver that does not converge, a decoder on a damaged file: the call
takes very long, or never ends. The process is alive and at full CPU; its peers block in their next
collective.

## What to do
Look at the arguments of the call: `py-spy dump --native --pid PID` shows where it is inside the library. Set
a limit (iterations, a timeout, the size of the input). If it ends by itself (a fit, a metric), do it after
the barrier, or on all ranks.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.member_names import command_on_host
from allaboard.analysis.stacks.example_awaited import example_awaited
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.analysis.stalls.stuck_members import (
    LONG_LIBRARY_CALL_S,
    StuckReason,
    find_stuck_members,
)
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Member, Severity, Spent
from allaboard.facts.samples import USER, sample_member, sample_stack


def check(view: JobView) -> Iterator[Claim]:
    for stuck in find_stuck_members(view):
        if stuck.reason is StuckReason.CALL:
            yield _claim(view, stuck.member, stuck.waiting)


def _claim(view: JobView, member: Member, peers_evidence: Evidence) -> Claim:
    assert member.stack is not None and member.stack.user is not None
    user_frame, inner, stays = member.stack.user, member.stack.frames[0], member.stack.stays
    return Claim(
        summary=f"{member.who.name} has been computing in one library call at {user_frame} for "
        f"more than {LONG_LIBRARY_CALL_S:.0f} s while the others wait for it",
        who=(member.who,),
        evidence=(
            Evidence(f"in {inner.function} ({inner.file}) for {stays:.0f} s", member.stack.by),
            Evidence(f"CPU busy, {member.cpu * 100:.0f} % of a core; no I/O", "/proc"),
            peers_evidence,
            Evidence(
                user_frame.text or "source not readable", f"{user_frame.file}:{user_frame.line}"
            ),
        ),
        fix=f"see what {user_frame.function} passes to the call at {user_frame.file}:{user_frame.line}, and "
        "set a limit; if it ends by itself (a fit, a metric), do it after the barrier, or on all ranks; "
        + command_on_host(view, member, f"py-spy dump --native --pid {member.who.pid}"),
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


_REGEX = Frame("/usr/lib/python3.11/re/__init__.py", 166, "match")
_MATCHES = msgspec.structs.replace(sample_stack(_REGEX, USER, samples=20, moving=True), stays=62.0)
_FIT = msgspec.structs.replace(
    sample_stack(Frame("/v/site-packages/sklearn/svm.py", 9, "fit"), USER, samples=20), stays=40.0
)

RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "a regular expression that has not returned for more than a minute": (
            example_awaited(sample_member(1, stack=_MATCHES, cpu=0.9)),
            "worker 1 has been computing in one library call at train.py:41 in train for more than 60 s "
            "while the others wait for it",
        )
    },
    silent_on={
        "a call of scikit-learn that gets little CPU, and has only begun": example_awaited(
            sample_member(
                1,
                stack=sample_stack(Frame("/v/site-packages/sklearn/svm.py", 9, "fit"), USER),
                cpu=0.13,
                os_state="R",
            )
        ),
        "a call of scikit-learn that has computed for 40 seconds": example_awaited(
            sample_member(1, stack=_FIT, cpu=1.0)
        ),
        "a library call of more than a minute before the first step": example_awaited(
            sample_member(1, stack=_MATCHES, cpu=0.9, step=0, ops=2)
        ),
        "a library call of more than a minute that reads from storage": example_awaited(
            sample_member(1, stack=_MATCHES, cpu=0.9, io=5e6)
        ),
        "a library call of more than a minute in an evaluation": example_awaited(
            sample_member(1, stack=_MATCHES, cpu=0.9, spent=Spent(now="evaluation"))
        ),
        "a call of scikit-learn at full CPU that has only begun": example_awaited(
            sample_member(
                1,
                stack=sample_stack(Frame("/v/site-packages/sklearn/svm.py", 9, "fit"), USER),
                cpu=1,
            )
        ),
    },
    passes=True,
    drill=("long-call",),
)
