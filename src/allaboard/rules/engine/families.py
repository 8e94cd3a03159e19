"""What all rules of a family have alike unless they say otherwise."""

from __future__ import annotations

from typing import Any

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Severity, Stage
from allaboard.facts.outcome import Retry

STAGES = {
    "CFG": Stage.CONFIG,
    "CODE": Stage.CONFIG,
    "ENV": Stage.CLUSTER,
    "EXIT": Stage.EXIT,
    "HOST": Stage.HOST,
    "JOIN": Stage.STARTUP,
    "NET": Stage.NETWORK,
}
"""Stages of the families that do not judge a job at run time."""
UNSTAGED = {
    "CFG": "read from configuration: the corpus in tests/corpus stages it",
    "CODE": "read from the script by its syntax tree: tests/scripts stages it",
}
"""Why no drill stages the rules of families that read texts."""
RETRIES = {
    "CFG": Retry.NEVER,
    "CODE": Retry.NEVER,
    "DATA": Retry.NEVER,
    "ENV": Retry.NEVER,
    "NUM": Retry.NEVER,
    "RES": Retry.RESOURCES,
}
"""Verdicts of families. Configuration, scripts, data and numbers are the same the next time; a limit is
reached again. What is not here may have passed: a lost host, a hang, a network, a killed process."""


def family_of(code: str) -> str:
    """Return the letters of a rule's code: the family to which it belongs."""
    return code.rstrip("0123456789")


def retry_verdict(family: str, rule: Rule[Any], claim: Claim) -> Retry | None:
    """Return what this claim says about trying the job again; None if it is no error.

    ``family`` is the letters of the rule's code. A claim that is not certain accuses no host.
    """
    if claim.severity is not Severity.ERROR:
        return None
    verdict = claim.retry or rule.retry or RETRIES.get(family, Retry.HERE)
    if verdict is Retry.ELSEWHERE and claim.certainty is not Certainty.CERTAIN:
        return Retry.HERE
    return verdict
