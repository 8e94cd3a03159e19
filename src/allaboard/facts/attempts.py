"""The rounds of a job: each is one launch of its workers, from the start to the last one's end."""

from __future__ import annotations

import msgspec

from allaboard.facts.bounds import Measure, Whole
from allaboard.facts.outcome import Outcome


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why a round ended."""

    who: str
    """The member or host that ended it, as a person says it ("worker 1")."""
    what: str
    """What happened to it ("was killed by SIGKILL")."""
    error: str = ""
    """Type and message of the exception; "" if there was none."""
    place: str = ""
    """``file:line`` of the exception; "" if there was none."""
    steps: Whole = 0
    """Steps that this member had done in this round."""

    def __str__(self) -> str:
        return f"{self.who} {self.what}"


class RoundEnd(msgspec.Struct, frozen=True, kw_only=True):
    """One round of a job and how it ended."""

    number: Whole
    """Number of the round."""
    outcome: Outcome
    """How it ended."""
    reason: str
    """Why, as a sentence."""
    seconds: Measure
    """Duration of the round."""
    steps: Whole = 0
    """Steps that its fastest member did in it."""
    first: Whole | None = None
    """Number that the framework itself gave to the first of these steps, which counts on if an optimizer
    was loaded from a checkpoint; None if it does not tell."""
    saved: Whole | None = None
    """Steps of this round that were done when it last wrote a checkpoint; -1 if it wrote none, None if
    that is not seen."""
    restored: Whole | None = None
    """Steps of this round that were done when it read a checkpoint; -1 if it read none, None if that is
    not seen."""
    cause: Cause | None = None
    """What it ended of; None if it ended well or that is not known."""
    findings: tuple[str, ...] = ()
    """Codes of the rules that spoke in it."""
    final: bool = False
    """True if it was ended because one of its tasks is not to be started again."""

    @property
    def reached(self) -> int | None:
        """Number of the last step, counted over all rounds; None if that is not known."""
        if self.first is None:
            return None
        return self.first + self.steps - 1 if self.steps else None


_RETURN_UNITS = {"out": "out_s", "snapshot": "snapshot_age_s", "lost": "lost_steps"}


class TaskReturn(msgspec.Struct, frozen=True, kw_only=True, rename=_RETURN_UNITS):
    """A task of a job with parameter servers that was started again alone."""

    task: str
    """The task, as "ps-0"."""
    cause: str
    """What it ended of."""
    decision: str
    """Why it was started again."""
    fell_with: str = ""
    """The task whose end made it end too ("ps-0"); "" if it ended by itself, was killed or stopped."""
    seconds: Measure | None = None
    """Seconds from its end until it had joined the cluster again; None if it did not."""
    out: Measure | None = None
    """Of a server: seconds from its end until somebody who trains did a step again; None if that is not
    known."""
    snapshot: Measure | None = None
    """Of a server: age (s) at its end of the snapshot from which its values came back; None if they came
    from none."""
    lost: Whole | None = None
    """Steps by which the training went back for it, by the framework's own count, else those that all
    workers did since the snapshot; None if neither is known."""

    @property
    def recovery(self) -> str:
        """The return as a clause: ``there again after 3.1 s, 40 steps lost``; "" if nothing is known."""
        parts = []
        if self.seconds is not None:
            parts.append(f"there again after {self.seconds:.1f} s")
        if self.out is not None:
            parts.append(f"next step after {self.out:.1f} s")
        if self.snapshot is not None:
            parts.append(f"its values are those of {self.snapshot:.1f} s before its end")
        if self.lost is not None:
            parts.append(f"{self.lost} step{'s' if self.lost != 1 else ''} lost")
        return ", ".join(parts)


class RoundReport(RoundEnd, frozen=True, kw_only=True, rename={"delay": "delay_s"}):
    """A round, and what was decided after it."""

    decision: str
    """What was decided, with its reason."""
    again: bool
    """True if another round was started."""
    delay: Measure = 0.0
    """Seconds until that round."""
    repeated: Whole | None = None
    """Steps that this round had to do again, since its checkpoint was older than the end of the round
    before; at most so many if the framework does not number its steps; None if that is not known."""
