"""The last lines of a run: steps, waiting, memory, and the finding that counts."""

from __future__ import annotations

import msgspec

from allaboard.agent.final_report import assemble_report
from allaboard.facts import Certainty, Exit, Finding, Op, Outcome, Report, Severity, Spent, Stage
from allaboard.facts.attempts import RoundReport
from allaboard.facts.samples import sample_job, sample_member, waiting_member
from allaboard.facts.step_spread import StepSpread
from allaboard.facts.time_shares import Load
from allaboard.report.clock_time import clock_time, note_line
from allaboard.report.finding_text import finding_lines
from allaboard.report.phases import phase_lines, step_lines
from allaboard.report.run_summary import closing_finding, location_line, summary_lines

END = Exit(ended_at=99.0, signal=15, ours=True)
RUN = {"run": Load(span=51.0), "spent": Spent(sync=0.4), "step": 160}


def hang_report(*findings: Finding) -> Report:
    """A job of two that hung for the last 35 s of 51."""
    view = sample_job(
        waiting_member(
            0, op=Op("all_reduce", 41, 64.0), exit=END, peak_rss_nbytes=1_200_000_000, **RUN
        ),
        sample_member(1, exit=END, peak_rss_nbytes=900_000_000, **RUN),
        ending_since=99.0,
        step_spread=StepSpread(steps=160, median_s=0.0911, low_s=0.08, high_s=0.31),
    )
    return assemble_report(
        job="j", command=(), outcome=Outcome.HANG, reason="no progress", code=4, started="",
        seconds=60, run_dir="/runs/7", view=view, findings=findings, notes=(),
    )  # fmt: skip


def finding(severity: Severity, summary: str, over: str | None = None) -> Finding:
    return Finding(
        rule="HANG005", name="not-in-the-collective", severity=severity, certainty=Certainty.LIKELY,
        stage=Stage.RUNTIME, who=(), summary=summary, evidence=(), fix="py-spy dump --pid 1", over=over,
        at="2026-11-25T20:44:48.605Z",
    )  # fmt: skip


def test_the_share_of_waiting_has_the_wait_that_never_ended() -> None:
    assert phase_lines(hang_report()) == [
        "median over 2 workers: 51 s of training, 69% of it waiting for other ranks (35 s at the end, in a "
        "call that never returned: rank 0)"
    ]


def test_steps_are_counted_per_second_of_the_time_in_which_the_job_moved() -> None:
    assert step_lines(hang_report()) == [
        "160 steps, 10 steps/s; median step 91.1 ms (90% of them from 80 ms to 0.31 s); memory at most "
        "1.2 GB (worker 0)"
    ]


def test_a_job_without_steps_has_no_such_line() -> None:
    workers = tuple(msgspec.structs.replace(w, step=0) for w in hang_report().workers)
    assert step_lines(msgspec.structs.replace(hang_report(), workers=workers)) == []


def test_the_first_error_is_shown_again_else_the_first_warning() -> None:
    warning, error = finding(Severity.WARNING, "slow"), finding(Severity.ERROR, "stopped")
    passed = finding(Severity.ERROR, "was stopped", over="2026-11-25T20:45:00Z")
    note = finding(Severity.INFO, "a note")
    assert closing_finding(hang_report(note, passed, warning, error)) == error
    assert closing_finding(hang_report(note, passed, warning)) == warning
    assert closing_finding(hang_report(note, passed)) is None


def test_a_finding_of_the_last_round_comes_before_those_of_rounds_that_are_over() -> None:
    def at(seconds: int, severity: Severity = Severity.ERROR) -> Finding:
        made = finding(severity, f"after {seconds} s")
        return msgspec.structs.replace(made, at=f"2026-11-25T20:44:{seconds:02}.500Z")

    first = RoundReport(
        number=0, outcome=Outcome.HANG, reason="stopped", seconds=20.0, decision="restart", again=True,
        delay=5.0,
    )  # fmt: skip
    last = msgspec.structs.replace(first, number=1, again=False, delay=0.0)
    restarted = {"started": "2026-11-25T20:44:00.000Z", "rounds": (first, last)}
    report = msgspec.structs.replace(hang_report(at(10), at(24), at(26), at(27)), **restarted)
    assert closing_finding(report) == at(26)
    report = msgspec.structs.replace(hang_report(at(10), at(26, Severity.WARNING)), **restarted)
    assert closing_finding(report) == at(10)
    report = msgspec.structs.replace(report, started="a while ago")
    assert closing_finding(report) == at(10)


def test_the_lines_are_in_order() -> None:
    report = hang_report(finding(Severity.ERROR, "stopped"))
    first, steps, waiting, findings = summary_lines(report)
    assert first == "the job hung and was ended after 60.0 s, exit code 4"
    assert steps.startswith("160 steps")
    assert "waiting for other ranks" in waiting
    assert findings.startswith("1 finding: HANG005")
    assert location_line(report) == "logs, journal and report: /runs/7/report.html"
    assert location_line(report, has_page=False) == "logs, journal and report: /runs/7"


def test_every_line_has_the_time_of_day() -> None:
    at = clock_time("2026-11-25T20:44:48.605Z")
    assert at.endswith(":44:48")
    assert note_line("done", "2026-11-25T20:44:48Z") == f"allaboard {at}: done"
    shown = finding(Severity.ERROR, "worker 1 is stopped")
    assert finding_lines(shown, clock_time=at)[0].startswith(f"{at} error HANG005")
    assert finding_lines(shown)[0].startswith("error HANG005")
    assert clock_time("") == ""
