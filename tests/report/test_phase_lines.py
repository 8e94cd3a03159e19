"""The line that tells where the time of a training went."""

from __future__ import annotations

import msgspec

from allaboard.agent.final_report import assemble_report
from allaboard.facts import Certainty, Finding, Outcome, Severity, Spent, Stage
from allaboard.facts.samples import sample_job, sample_member
from allaboard.report.phases import phase_lines


def told(*spent: Spent, findings: tuple[Finding, ...] = ()) -> list[str]:
    report = assemble_report(
        job="j", command=(), outcome=Outcome.COMPLETED, reason="", code=0, started="", seconds=1,
        run_dir="", view=sample_job(*(sample_member(r) for r in range(len(spent)))),
        findings=findings, notes=(),
    )  # fmt: skip
    workers = [
        msgspec.structs.replace(w, trained_s=20.0, spent=s)
        for w, s in zip(report.workers, spent, strict=True)
    ]
    return phase_lines(msgspec.structs.replace(report, workers=tuple(workers)))


def test_what_all_do_is_told_of_each() -> None:
    each = Spent(sync=5.0, checkpoints=2.0, saved=2)
    assert told(each, each, each) == [
        "median over 3 workers: 20 s of training, 25% of it waiting for other ranks, 10% in 2 checkpoints"
    ]


def test_what_one_does_alone_is_told_of_it() -> None:
    alone, other = Spent(checkpoints=12.0, saved=2, evaluations=1.0, evaluated=1), Spent(sync=10.0)
    for others in ([other], [other, other]):
        assert "60% of it in 2 checkpoints (rank 0), " in told(alone, *others)[0] + ", "
        assert "5% in 1 evaluation (rank 0)" in told(alone, *others)[0]


def test_an_error_does_not_hide_where_the_time_went() -> None:
    hang = Finding(
        rule="HANG001", name="stopped", severity=Severity.ERROR, certainty=Certainty.CERTAIN,
        stage=Stage.RUNTIME, who=(), summary="worker 1 is stopped", evidence=(), fix="kill -CONT 1",
    )  # fmt: skip
    each = Spent(sync=5.0)
    assert told(each, each) == told(each, each, findings=(hang,)) != []
