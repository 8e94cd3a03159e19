"""A worker was interrupted from outside (SIGINT), and nobody interrupted the job.

## Why it matters
Its traceback ends in KeyboardInterrupt, at a line where nothing is wrong: that is just where it was when
the signal came. The others fail because of it.

## What to do
Find out who sends it: Ctrl-C in another terminal, `kill -INT`, a notebook's stop button, or a batch system
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
from allaboard.analysis.member_names import names
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, Frame, JobView, Member, Raised, Stage
from allaboard.facts.samples import ended, job, waiting


def check(view: JobView) -> Iterator[Claim]:
    found = order_failures(view)
    members = [
        m for m in found.root_failures if was_interrupted(m) and not must_delay_report(view, m)
    ]
    if members:
        yield _claim(members, found)
    for one in found.evaluators:
        if was_interrupted(one) and not must_delay_report(view, one):
            yield soften_evaluator_claim(view, one, _claim([one], found))


def _claim(members: list[Member], found: FailureOrder) -> Claim:
    first = members[0]
    error = first.raised
    assert error is not None
    evidence = [Evidence(f"KeyboardInterrupt at {error.where or 'no line of its own'}", first.log)]
    evidence += found.consequence_evidence(first)
    return Claim(
        summary=f"{names(members)} {'were' if len(members) > 1 else 'was'} interrupted from outside (SIGINT)",
        who=tuple(m.who for m in members),
        evidence=tuple(evidence),
        fix="nothing is wrong in your code: see who sends SIGINT (a terminal, the batch system, a script)",
        since=error.at,
    )


_INTERRUPT = ("KeyboardInterrupt", "")
_LINE = Frame("/home/u/train.py", 12, "main", "raise KeyboardInterrupt")
_ITSELF = {"raised": Raised(type="KeyboardInterrupt", message="", at=95.0, where=_LINE)}
RULE = Rule(
    stage=Stage.EXIT,
    reads=JobView,
    check=check,
    needs=("exit", "raised"),
    fires_on={
        "one rank": (
            job(ended(0, raised=_INTERRUPT, signal=2), waiting(1), waiting(2)),
            "worker 0 was interrupted from outside (SIGINT)",
        ),
    },
    silent_on={
        "its agent was, by Ctrl-C on its host": job(
            ended(0, raised=_INTERRUPT, signal=2, member={"interrupted": 94.9}), waiting(1)
        ),
        "an exception of its own": job(ended(0, raised=("ValueError", "bad")), waiting(1)),
        "it raises that itself": job(ended(0, code=1, member=_ITSELF), waiting(1)),
        "caught, and ended well": job(ended(0, code=0), waiting(1), waiting(2)),
    },
    since="0.1",
    drill=("interrupted",),
    relations=Relations(begins_failure=True, interruption=True),
)
