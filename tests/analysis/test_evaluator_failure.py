"""An evaluator that fails: a warning, nobody's cause, and no end of the job."""

from __future__ import annotations

from typing import Any

import pytest

from allaboard.analysis.failures.failure_causality import order_failures
from allaboard.facts import Certainty, Claim, JobView, Member, Outcome, RoundEnd, Severity
from allaboard.facts.samples import (
    ended_member,
    sample_evaluator,
    sample_job,
    sample_member,
    waiting_member,
)
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.policy.end.verdict import end_verdict
from allaboard.policy.restart.attempt_summary import find_root_cause, summarize_round
from allaboard.rules.engine.catalogue import load_catalogue

LOST = ("RuntimeError", "Connection closed by peer [127.0.0.1]:18334")
ENDS: list[dict[str, Any]] = [
    {"signal": 9},
    {"signal": 15},
    {"signal": 11},
    {"signal": 10},
    {"signal": 9, "oom": True},
    {"code": 3},
    {"raised": ("KeyError", "x")},
    {"raised": ("KeyboardInterrupt", ""), "signal": 2},
    {"raised": ("RuntimeError", "DataLoader worker (pid 4711) is killed by signal: Killed. ")},
    {"raised": LOST},
]


def evaluates(**how: Any) -> Member:
    return ended_member(
        2, **how, member={"who": sample_evaluator(2), "round": 0, "declared": None, "step": 0}
    )


def claims(view: JobView) -> list[Claim]:
    exits = [e.rule for e in load_catalogue().entries if e.code.startswith(("EXIT", "RES001"))]
    return [claim for rule in exits for claim in rule.check(view)]


@pytest.mark.parametrize("how", ENDS, ids=str)
def test_it_is_told_once_as_a_warning(how: dict[str, Any]) -> None:
    (claim,) = claims(sample_job(sample_member(0), sample_member(1), evaluates(**how)))
    assert claim.severity is Severity.WARNING and claim.certainty is Certainty.CERTAIN
    assert claim.summary.startswith("evaluator 0 ")
    assert claim.summary.endswith("; the training goes on without it")


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("how", ENDS, ids=str)
def test_no_job_is_ended_for_it(how: dict[str, Any], restarts: bool) -> None:
    view = sample_job(sample_member(0), sample_member(1), evaluates(ended_at=20.0, **how))
    entries = load_catalogue().entries
    told = [(e.stage, c) for e in entries if e.code[:4] == "EXIT" for c in e.rule.check(view)]
    assert end_verdict(view, (), told, EndPolicy(restarts=restarts, stop_on_hang=True)) is None
    rank = sample_job(
        sample_member(0), ended_member(1, ended_at=20.0, **how), evaluates(ended_at=10.0, **how)
    )
    assert end_verdict(rank, (), (), EndPolicy(restarts=restarts)) is not None


def test_nobody_falls_because_of_it_and_it_hides_no_cause() -> None:
    view = sample_job(
        ended_member(0, ended_at=95.0, raised=LOST),
        ended_member(1, ended_at=94.9, signal=15),
        evaluates(ended_at=60.0, signal=9),
    )
    found = order_failures(view)
    assert [m.who.rank for m in found.root_failures] == [1] and [
        m.who.rank for m in found.consequences
    ] == [0]
    said = {c.summary: [e.observed for e in c.evidence] for c in claims(view)}
    assert "rank 0 failed as a consequence" in said["worker 1 was killed by SIGTERM"]
    (own,) = (seen for text, seen in said.items() if text.startswith("evaluator 0"))
    assert not any("fell" in s for s in own)


def test_what_the_launcher_does_to_it_in_the_end_is_not_its_own() -> None:
    found = order_failures(
        sample_job(
            waiting_member(0),
            ended_member(1, ended_at=90.0, signal=9),
            evaluates(ended_at=92.0, signal=15),
        )
    )
    assert [m.who.rank for m in found.root_failures] == [1] and not found.evaluators


def test_the_same_exception_of_a_rank_is_an_error() -> None:
    how = {"raised": ("KeyError", "x")}
    told = claims(sample_job(sample_member(0), ended_member(1, **how), evaluates(**how)))
    assert [c.severity for c in told] == [Severity.ERROR, Severity.WARNING]


def test_where_it_is_alone_its_end_is_the_cause() -> None:
    view = sample_job(evaluates(signal=9), launched=1, ended=True)
    why = find_root_cause(view)
    assert why is not None and "evaluator 0" in str(why)
    end: RoundEnd = summarize_round(1, view, Outcome.FAILED, "1 of 1 workers failed")
    assert end.cause == why
