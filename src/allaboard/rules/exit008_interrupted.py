"""A worker was interrupted from outside (SIGINT), while the job as a whole was not.

## Why it matters
Its traceback ends in KeyboardInterrupt, at a line where nothing is wrong: that is only where it was when the
signal arrived. The others fail as a consequence.

## What to do
Find out what sends it: Ctrl-C in another terminal, `kill -INT`, a notebook's stop button, or a batch system
that sends SIGINT as a warning before its time limit. There is nothing to fix in the code.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.failures.evaluator_failure import soften_evaluator_claim
from allaboard.analysis.failures.failure_causality import (
    FailureOrder,
    must_delay_report,
    order_failures,
    was_interrupted,
)
from allaboard.analysis.member_names import name_members
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, Frame, JobView, Member, Raised
from allaboard.facts.samples import ended_member, sample_job, waiting_member


def check(view: JobView) -> Iterator[Claim]:
    order = order_failures(view)
    members = [
        m for m in order.root_failures if was_interrupted(m) and not must_delay_report(view, m)
    ]
    if members:
        yield _claim(members, order)
    for evaluator in order.evaluators:
        if was_interrupted(evaluator) and not must_delay_report(view, evaluator):
            yield soften_evaluator_claim(view, evaluator, _claim([evaluator], order))


def _claim(members: list[Member], order: FailureOrder) -> Claim:
    first_member = members[0]
    error = first_member.raised
    assert error is not None
    evidence = [
        Evidence(f"KeyboardInterrupt at {error.where or 'no line of its own'}", first_member.log)
    ]
    evidence += order.consequence_evidence(first_member)
    return Claim(
        summary=f"{name_members(members)} {'were' if len(members) > 1 else 'was'} interrupted from "
        "outside (SIGINT)",
        who=tuple(m.who for m in members),
        evidence=tuple(evidence),
        fix="your code is not the cause: find out what sends SIGINT (a terminal, the batch system, a "
        "script); if it was interrupted because it hung: start it again, and while it hangs: allaboard "
        "diagnose",
        since=error.raised_at,
    )


_INTERRUPT = ("KeyboardInterrupt", "")
_LINE = Frame("/home/u/train.py", 12, "main", "raise KeyboardInterrupt")
_ITSELF = {"raised": Raised(type="KeyboardInterrupt", message="", raised_at=95.0, where=_LINE)}
RULE = Rule(
    reads=JobView,
    check=check,
    needs=("exit", "raised"),
    fires_on={
        "one of three ranks was interrupted": (
            sample_job(
                ended_member(0, raised=_INTERRUPT, signal=2), waiting_member(1), waiting_member(2)
            ),
            "worker 0 was interrupted from outside (SIGINT)",
        )
    },
    silent_on={
        "Ctrl-C reached the allaboard agent on the worker's host": sample_job(
            ended_member(0, raised=_INTERRUPT, signal=2, member={"interrupted": 94.9}),
            waiting_member(1),
        ),
        "a worker raised ValueError": sample_job(
            ended_member(0, raised=("ValueError", "bad")), waiting_member(1)
        ),
        "the script itself raises KeyboardInterrupt": sample_job(
            ended_member(0, code=1, member=_ITSELF), waiting_member(1)
        ),
        "a worker that caught the interrupt, and exited with code 0": sample_job(
            ended_member(0, code=0), waiting_member(1), waiting_member(2)
        ),
    },
    drill=("interrupted",),
    relations=Relations(begins_failure=True, interruption=True),
)
