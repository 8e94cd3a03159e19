"""What to do with a run that failed: which finding decides, and the exit code for a scheduler."""

from __future__ import annotations

import pytest

from allaboard.facts import Certainty, Finding, Outcome, Retry, RetryAdvice, Severity, Stage, Who
from allaboard.policy.retry.retry_advice import advise_retry
from allaboard.policy.retry.scheduler_exit_codes import SCHEDULER_EXIT_CODES, scheduler_exit_code


def finding(rule: str, retry: Retry | None, host: str = "", **changes: object) -> Finding:
    fields: dict[str, object] = {
        "severity": Severity.ERROR, "certainty": Certainty.CERTAIN, "stage": Stage.EXIT,
        "who": (Who(index=1, rank=1, host=host),), "summary": f"{rule} happened", "evidence": (),
        "fix": "",
    }  # fmt: skip
    return Finding(rule=rule, name=rule.lower(), retry=retry, **{**fields, **changes})  # type: ignore[arg-type]


def verdict(*findings: Finding, recurring: str = "") -> RetryAdvice:
    advice = advise_retry(Outcome.FAILED, findings, recurring)
    assert advice is not None
    return advice


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.USAGE, Outcome.INTERRUPTED])
def test_a_run_that_did_not_fail_has_no_advice(outcome: Outcome) -> None:
    assert advise_retry(outcome, [finding("A", Retry.NEVER)]) is None
    assert scheduler_exit_code(outcome, None, 143) == 143


def test_a_host_at_fault_decides_over_the_script_that_failed_on_it() -> None:
    advice = verdict(finding("A", Retry.NEVER, "a"), finding("B", Retry.ELSEWHERE, "b"))
    assert (advice.verdict, advice.rule, advice.hosts) == (Retry.ELSEWHERE, "B", ("b",))


def test_two_hosts_at_fault_are_both_named_once() -> None:
    findings = [finding("B", Retry.ELSEWHERE, host) for host in ("b", "c", "b", "")]
    assert verdict(*findings).hosts == ("b", "c")


@pytest.mark.parametrize("retry", [Retry.NEVER, Retry.RESOURCES])
def test_only_what_is_certain_keeps_a_job_from_being_tried_again(retry: Retry) -> None:
    assert verdict(finding("A", retry)).verdict is retry
    for changes in (
        {"certainty": Certainty.LIKELY},
        {"severity": Severity.WARNING},
        {"over": "2026-01-01T00:00:00.000Z"},
    ):
        assert verdict(finding("A", retry, **changes)).verdict is Retry.HERE


def test_the_script_that_check_read_does_not_outweigh_what_happened() -> None:
    read = finding("CODE", Retry.NEVER, stage=Stage.CONFIG)
    assert verdict(read, finding("KILLED", Retry.HERE)).rule == "KILLED"
    assert verdict(read).verdict is Retry.NEVER


def test_without_a_finding_it_may_be_tried_again() -> None:
    assert verdict() == RetryAdvice(verdict=Retry.HERE, reason="no finding names the cause")


def test_what_failed_the_same_way_in_every_round_is_not_tried_again() -> None:
    again = "worker 1 raised KeyError at train.py:3 after 5 steps, as in round 0"
    assert verdict(finding("A", Retry.HERE), recurring=again) == RetryAdvice(
        verdict=Retry.NEVER, reason=again
    )
    assert verdict(finding("A", Retry.ELSEWHERE, "b"), recurring=again).verdict is Retry.ELSEWHERE


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.HANG, Outcome.ROLL_CALL_FAILED])
@pytest.mark.parametrize("retry", Retry)
def test_each_verdict_has_a_code_that_nobody_else_uses(outcome: Outcome, retry: Retry) -> None:
    code = scheduler_exit_code(outcome, RetryAdvice(verdict=retry, reason=""), 1)
    assert code == SCHEDULER_EXIT_CODES[retry]
    taken = {
        *range(5),
        *range(64, 79),
        99,
        100,
        *range(123, 166),
        *range(200, 244),
        *range(255, 300),
    }
    assert code not in taken
    assert (code >= 128) == (retry in (Retry.HERE, Retry.ELSEWHERE)), "Kubeflow's ExitCode"
