"""What the user allowed, what is decided, and which claims count for it."""

from __future__ import annotations

import msgspec

from allaboard.facts import Certainty, Claim, Outcome, Severity, Stage

START_STAGES = (Stage.STARTUP, Stage.NETWORK, Stage.CLUSTER)
"""Stages whose errors keep a job from starting."""


class EndPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When the user allowed a job to be ended."""

    only_observes: bool = False
    """True if nothing is ended and no gate is held."""
    stop_on_hang: bool = False
    """True if the job is ended on a certain finding of a hang, or after ``hang_after``."""
    hang_after: float = 600.0
    """Time without progress after which a job counts as hanging, whatever the cause (s)."""
    ends_survivors: bool = True
    """False if another launcher decides what becomes of the members that are left after a failure."""
    ends_servers: bool = True
    """True if servers are ended when the training is done."""
    only_reports: bool = False
    """True if a failed roll call is reported, and the framework's timeout decides when to give up."""
    stop_on_error: bool = False
    """True in a rehearsal, which is ended once it is known what is wrong."""
    patience: float = 0.0
    """How long members at the gate wait for one that may still come (s)."""
    init_within: float | None = None
    """How long the framework's init may take after the roll call (s); None for no bound."""
    start_bound: float | None = None
    """Time from the roll call within which a job that a network fault holds up must have begun (s); None for
    no bound."""
    restarts: bool = False
    """True if what failed may be restarted. Then a certain failure ends the round at once, and so does a
    stopped worker."""
    stopped_after: float = 30.0
    """How long a worker may be stopped by a signal while others wait for it (s)."""

    @property
    def hang_limit(self) -> float | None:
        """Silence (s) after which a training is ended, whatever the cause; None if it never is."""
        ends_hang = self.stop_on_hang and not (self.only_observes or self.stop_on_error)
        return self.hang_after if ends_hang else None


class Verdict(msgspec.Struct, frozen=True):
    """The decision to end the job."""

    outcome: Outcome
    reason: str
    """Why, for people."""


def is_proven_error(claim: Claim) -> bool:
    """Return True if the claim is an error that the evidence leaves no doubt of."""
    return claim.severity is Severity.ERROR and claim.certainty is Certainty.CERTAIN
