"""What single findings say about trying again: by their claim, their rule or their family."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from allaboard.analysis.failures.exception_retry import retry_of_exception
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, JobView, Raised, Retry, Severity, Stage
from allaboard.rules.engine.catalogue import load_catalogue, load_rule
from allaboard.rules.engine.evaluate import make_finding, run_rules
from allaboard.rules.engine.families import RETRIES, retry_verdict

CLAIM = Claim(summary="x")


def rule(retry: Retry | None = None) -> Rule[JobView]:
    return Rule(
        stage=Stage.EXIT, reads=JobView, check=lambda view: iter(()), fires_on={}, silent_on={},
        since="0.1", unstaged="a test", retry=retry,
    )  # fmt: skip


def test_a_claim_says_more_than_its_rule_and_that_more_than_its_family() -> None:
    assert retry_verdict("RES", rule(), CLAIM) is Retry.RESOURCES
    assert retry_verdict("RES", rule(Retry.NEVER), CLAIM) is Retry.NEVER
    said = replace(CLAIM, retry=Retry.HERE)
    assert retry_verdict("RES", rule(Retry.NEVER), said) is Retry.HERE
    assert retry_verdict("HANG", rule(), CLAIM) is Retry.HERE


def test_a_claim_that_is_not_certain_accuses_no_host() -> None:
    said = replace(CLAIM, retry=Retry.ELSEWHERE)
    assert retry_verdict("NET", rule(), said) is Retry.ELSEWHERE
    for certainty in (Certainty.LIKELY, Certainty.UNKNOWN):
        assert retry_verdict("NET", rule(), replace(said, certainty=certainty)) is Retry.HERE


def test_a_warning_says_nothing() -> None:
    assert retry_verdict("RES", rule(), replace(CLAIM, severity=Severity.WARNING)) is None


def test_the_families_are_those_of_the_catalogue() -> None:
    families = {e.code.rstrip("0123456789") for e in load_catalogue().entries}
    assert RETRIES.keys() < families


@pytest.mark.parametrize(
    ("name", "case", "verdict"),
    [
        ("port-taken", "a web server uses the rendezvous port of this host", Retry.ELSEWHERE),
        ("port-taken", "the worker itself already uses the rendezvous port", Retry.NEVER),
        ("port-taken", "a port below 1024, which only root may use", Retry.NEVER),
        (
            "port-taken",
            "PyTorch could not listen, and it is known which program uses the port",
            Retry.HERE,
        ),
        (
            "rendezvous-folder",
            "one host has not mounted the folder of the rendezvous file",
            Retry.ELSEWHERE,
        ),
        ("exception", "a worker has reached the limit on open files", Retry.RESOURCES),
        ("exception", "all workers raised the same exception at the same line", Retry.NEVER),
        ("killed", "one worker was killed by SIGKILL, and the others lost their peer", Retry.HERE),
        ("out-of-memory", "the kernel's out-of-memory killer ended a worker", Retry.RESOURCES),
        ("sizes-disagree", None, Retry.NEVER),
        ("host-gone", None, Retry.HERE),
    ],
)
def test_what_a_rule_says_of_its_own_examples(name: str, case: str | None, verdict: Retry) -> None:
    entry = load_rule(name)
    facts = entry.rule.fires_on[case or next(iter(entry.rule.fires_on))][0]
    findings = [make_finding(e, claim) for e, claim in run_rules(facts, [entry])]
    assert findings[0].retry is verdict


@pytest.mark.parametrize(
    ("kind", "message", "verdict"),
    [
        ("RuntimeError", "CUDA error: uncorrectable ECC error encountered", Retry.ELSEWHERE),
        ("XlaRuntimeError", "INTERNAL: CUDA_ERROR_ECC_UNCORRECTABLE: x", Retry.ELSEWHERE),
        ("RuntimeError", "CUDA error: an illegal memory access was encountered", Retry.HERE),
        ("RuntimeError", "CUDA error: misaligned address", Retry.HERE),
        ("RuntimeError", "CUDA error: invalid device ordinal", Retry.HERE),
        ("ModuleNotFoundError", "No module named 'apex'", Retry.NEVER),
        ("yaml.YAMLError", "bad", Retry.HERE),
        ("OSError", "We couldn't connect to 'https://huggingface.co'", Retry.HERE),
        ("ValueError", "environment variable RANK expected, but not set", Retry.NEVER),
        ("OSError", "[Errno 116] Stale file handle", Retry.HERE),
    ],
)
def test_what_an_exception_says(kind: str, message: str, verdict: Retry) -> None:
    assert retry_of_exception(Raised(type=kind, message=message, raised_at=0.0)) is verdict
