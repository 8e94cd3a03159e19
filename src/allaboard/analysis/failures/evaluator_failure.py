"""What is told of an evaluator that failed: nobody waits for it, and no job is ended for it."""

from __future__ import annotations

import msgspec

from allaboard.analysis.parameter_servers.parameter_servers import AROUND, trainers
from allaboard.facts import Claim, JobView, Member, Severity


def mildly(view: JobView, member: Member, claim: Claim) -> Claim:
    """The claim that this one failed, as it is of a rank or a task of the cluster; of an evaluator a warning,
    which says what becomes of the training."""
    if member.who.job not in AROUND:
        return claim
    work = trainers(view)
    goes_on = not work or any(m.alive for m in work)
    said = "; the training goes on without it" if goes_on else ""
    return msgspec.structs.replace(claim, summary=claim.summary + said, severity=Severity.WARNING)
