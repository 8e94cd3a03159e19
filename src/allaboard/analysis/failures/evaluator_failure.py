"""Claims about an evaluator that failed: no member waits for it, and no job is ended because of it."""

from __future__ import annotations

import msgspec

from allaboard.analysis.parameter_servers import AUXILIARY_JOBS, training_members
from allaboard.facts import Claim, JobView, Member, Severity


def soften_evaluator_claim(view: JobView, member: Member, claim: Claim) -> Claim:
    """Return the claim about a failed member, for an evaluator as a warning that training goes on or not."""
    if member.who.job not in AUXILIARY_JOBS:
        return claim
    trainers_of_job = training_members(view)
    training_continues = not trainers_of_job or any(m.alive for m in trainers_of_job)
    suffix = "; the training goes on without it" if training_continues else ""
    return msgspec.structs.replace(claim, summary=claim.summary + suffix, severity=Severity.WARNING)
