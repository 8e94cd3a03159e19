"""What the user allowed, what is decided, and which claims count for it."""

from __future__ import annotations

import msgspec

from allaboard.facts import Certainty, Claim, Outcome, Severity, Stage

START_STAGES = (Stage.STARTUP, Stage.NETWORK, Stage.CLUSTER)
"""Stages whose errors keep a job from starting."""


class EndPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What the user allowed. ``observe`` ends nothing; ``stop_on_hang`` ends a job on a certain
    finding, or after ``hang_after`` s without progress; ``ends_survivors`` is False where another
    launcher decides what becomes of the others; ``ends_servers``: those that serve are ended when the work
    is done; ``only_reports``: a roll call that fails is told, and the framework's own timeout decides;
    ``patience``: seconds that they who stand at the door wait for somebody who may still come;
    ``init_within``: seconds that the framework's own init may take after that; ``bound``: seconds from
    the roll call in which a job that a fault of the network holds up must have begun; ``stop_on_error``: a
    rehearsal, which ends once it is known what is wrong. ``restarts``: what failed may be started again, so
    that a failure that is certain ends the round at once, and a worker that is stopped for
    ``stopped_after`` s while others wait does too."""

    only_observes: bool = False
    stop_on_hang: bool = False
    hang_after: float = 600.0
    ends_survivors: bool = True
    ends_servers: bool = True
    only_reports: bool = False
    stop_on_error: bool = False
    patience: float = 0.0
    init_within: float | None = None
    start_bound: float | None = None
    restarts: bool = False
    stopped_after: float = 30.0


class Verdict(msgspec.Struct, frozen=True):
    """End the job so, for this reason."""

    outcome: Outcome
    reason: str


def is_proven_error(claim: Claim) -> bool:
    """An error that the evidence leaves no doubt of."""
    return claim.severity is Severity.ERROR and claim.certainty is Certainty.CERTAIN
