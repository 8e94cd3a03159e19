"""The termination message of a container: where it goes, and how much of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.agent.final_report import assemble_report
from allaboard.facts import Certainty, Evidence, Finding, Report, Severity, Stage, Who
from allaboard.facts.outcome import Outcome, Retry, RetryAdvice
from allaboard.facts.samples import sample_job
from allaboard.schedulers.end_of_run import advice_lines, tell_scheduler
from allaboard.schedulers.scheduler_options import SchedulerOptions
from allaboard.schedulers.termination_message import (
    MAX_NBYTES,
    cut_to_bytes,
    termination_message,
    termination_path,
)

IN_KUBERNETES = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
ADVICE = RetryAdvice(
    verdict=Retry.ELSEWHERE, reason="worker 1 met a fault of its GPU", rule="EXIT002", hosts=("n2",)
)


def failed_report(advice: RetryAdvice | None = ADVICE) -> Report:
    return assemble_report(
        job="j", command=(), outcome=Outcome.FAILED, reason="worker 1 failed", code=181, started="",
        seconds=1, run_dir="/runs/7", view=sample_job(), findings=(), notes=(), retry=advice,
    )  # fmt: skip


def finding(observed: str) -> Finding:
    return Finding(
        rule="EXIT002", name="exception", severity=Severity.ERROR, certainty=Certainty.CERTAIN,
        stage=Stage.EXIT, who=(Who(index=1, rank=1, host="n2"),), summary="worker 1 met a fault",
        evidence=(Evidence(observed),), fix="nvidia-smi",
    )  # fmt: skip


def test_the_message_has_the_end_the_verdict_and_the_finding() -> None:
    text = termination_message(failed_report(), finding("CUDA error"))
    first, second, third, *rest = text.splitlines()
    assert first == "allaboard: failed, exit code 181: worker 1 failed"
    assert second == "try again: elsewhere (worker 1 met a fault of its GPU)"
    assert third.startswith("error EXIT002 exception: worker 1 met a fault")
    assert rest == ["  why  CUDA error", "  do   nvidia-smi"]


def test_a_message_is_cut_between_characters() -> None:
    for text in ("x" * 5000, "ж" * 5000, "x" + "ж" * 5000, "𝔘" * 2000, "xx" + "€" * 3000):
        cut = cut_to_bytes(text, MAX_NBYTES)
        assert MAX_NBYTES - 4 < len(cut.encode()) <= MAX_NBYTES
        assert text.startswith(cut.removesuffix("…\n")) and cut.endswith("…\n")
    assert cut_to_bytes("ж" * 2048, MAX_NBYTES) == "ж" * 2048


def test_a_message_with_what_is_no_text_is_written_all_the_same(tmp_path: Path) -> None:
    report = failed_report(RetryAdvice(verdict=Retry.HERE, reason="raised \udcff\x1b[31m"))
    path = tmp_path / "message"
    assert list(tell_scheduler(report, None, SchedulerOptions(termination_path=path), {})) == []
    assert b"\x1b" not in path.read_bytes()
    assert "raised" in path.read_text()


def test_the_message_goes_to_the_kubelets_file_if_there_is_one(tmp_path: Path) -> None:
    file = tmp_path / "termination-log"
    assert termination_path(IN_KUBERNETES, file) is None
    file.touch()
    assert termination_path(IN_KUBERNETES, file) == file
    assert termination_path({}, file) is None


def test_a_message_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "none" / "message"
    lines = list(tell_scheduler(failed_report(), None, SchedulerOptions(termination_path=path), {}))
    assert lines == [
        f"the termination message cannot be written: No such file or directory: {path}"
    ]


@pytest.mark.parametrize("advice", [None, RetryAdvice(verdict=Retry.HERE, reason="a hang")])
def test_without_hosts_and_options_the_last_lines_are_as_before(advice: RetryAdvice | None) -> None:
    slurm = {"SLURM_JOB_NODELIST": "n[1-3]"}
    assert advice_lines(failed_report(advice), SchedulerOptions(), slurm) == []


def test_the_last_lines_name_the_hosts_as_slurm_does() -> None:
    slurm = {"SLURM_JOB_NODELIST": "n[1-3]"}
    assert advice_lines(failed_report(), SchedulerOptions(exit_codes=True), slurm) == [
        "exit code 181: try again on other hosts (EXIT002)",
        "hosts at fault: n2",
        "sbatch --exclude=n2 SCRIPT   # the same job, without what is at fault",
    ]
    assert advice_lines(failed_report(), SchedulerOptions(), {}) == ["hosts at fault: n2"]
