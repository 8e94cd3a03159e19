"""What a finding says about trying again: its claim, else its rule, else its rule's family."""

from __future__ import annotations

from typing import Any

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Severity
from allaboard.facts.outcome import Retry

FAMILY_DEFAULTS = {
    "CFG": Retry.NEVER,
    "CODE": Retry.NEVER,
    "DATA": Retry.NEVER,
    "ENV": Retry.NEVER,
    "NUM": Retry.NEVER,
    "RES": Retry.RESOURCES,
}
"""Verdicts of families. Configuration, scripts, data and numbers are the same the next time; a limit is
reached again. What is not here may have passed: a lost host, a hang, a network, a killed process."""


def retry_verdict(family: str, rule: Rule[Any], claim: Claim) -> Retry | None:
    """Return what this claim says about trying the job again; None if it is no error.

    ``family`` is the letters of the rule's code. A claim that is not certain accuses no host.
    """
    if claim.severity is not Severity.ERROR:
        return None
    verdict = claim.retry or rule.retry or FAMILY_DEFAULTS.get(family, Retry.HERE)
    if verdict is Retry.ELSEWHERE and claim.certainty is not Certainty.CERTAIN:
        return Retry.HERE
    return verdict
