"""A member stays in one place of its own code while the others wait for it.

## Why it matters
A loop that never ends, a condition that never comes true, a retry without a bound: the process lives,
perhaps at full CPU, and its peers stand in their next collective until a timeout
that names nobody.

## What to do
Look at the line. A long computation that only one rank does (a metric, an evaluation in plain
Python) looks the same from outside: if it is one, let the others know by a longer timeout,
or do it after the barrier.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.spot import Spot, spot
from allaboard.evidence.stall import IDLE, stall, still, waiting_where
from allaboard.evidence.standing import stood_since
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Member, Severity, Stage
from allaboard.facts.samples import REDUCE, USER, member, stack, stalled, waiting


def check(view: JobView) -> Iterator[Claim]:
    found = stall(view)
    if found is None or not found.waiting:
        return
    for one in found.elsewhere:
        if not one.stopped and still(one) and spot(one.stack) is Spot.USER and _own(one):
            yield _claim(view, one, waiting_where(found))


def _own(one: Member) -> bool:
    """A member that computes inside a library is at work; one that spins in user code is not."""
    assert one.stack is not None
    return one.stack.frames[0].is_user or one.cpu < IDLE


def _claim(view: JobView, one: Member, others: Evidence) -> Claim:
    assert one.stack is not None
    place = one.stack.user
    assert place is not None
    # A long call into native code looks the same from outside as an endless loop.
    working = one.cpu >= IDLE
    busy = f"{one.cpu * 100:.0f} % of a core" if one.cpu > 0.05 else "no CPU"
    look = f"{one.stack.samples} looks over {one.stack.span:.1f} s, {busy}"
    return Claim(
        summary=f"{one.who.job} {one.who.index} {'stays' if working else 'is stuck'} at {place} "
        f"{'with its CPU busy ' if working else ''}while the others wait for it",
        who=(one.who,),
        evidence=(
            Evidence(f"the same place in {look}", one.stack.by),
            others,
            Evidence(place.text or "source not readable", f"{place.file}:{place.line}"),
        ),
        fix=f"see what {place.function} waits for at {place.file}:{place.line}; "
        f"py-spy dump --locals --pid {one.who.pid}",
        severity=Severity.WARNING if working else Severity.ERROR,
        certainty=Certainty.LIKELY,
        since=stood_since(view),
    )


_SPIN = Frame("/home/u/train.py", 33, "wait_for_flag", "while not flag.is_set():")
RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    fires_on={
        "endless loop": (
            stalled(waiting(0), member(1, stack=stack(_SPIN, USER), cpu=1.0), waiting(2)),
            "worker 1 stays at train.py:33 in wait_for_flag with its CPU busy "
            "while the others wait for it",
        ),
    },
    silent_on={
        "moving stacks": stalled(
            waiting(0), member(1, stack=stack(_SPIN, USER, moving=True), cpu=1.0), waiting(2)
        ),
        "a long call of a library": stalled(
            waiting(0),
            member(1, stack=stack(Frame("/v/site-packages/sklearn/svm.py", 9, "fit"), USER), cpu=1),
            waiting(2),
        ),
        "all in the collective": stalled(
            waiting(0), member(1, stack=stack(REDUCE, USER)), waiting(2)
        ),
    },
    since="0.1",
    drill=("stuck-in-python", "tf-stuck-in-python"),
)
