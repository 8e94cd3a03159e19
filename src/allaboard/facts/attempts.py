"""The rounds of a job: each is one launch of its workers, from the start to the last one's end."""

from __future__ import annotations

import msgspec

from allaboard.facts.outcome import Outcome


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """What a round ended of: ``who`` and ``what`` as a person says it ("worker 1", "was killed by
    SIGKILL"); ``error`` and ``place`` (``file:line``) where it was an exception, else "".
    ``steps`` are those that this member had done in this round."""

    who: str
    what: str
    error: str = ""
    place: str = ""
    steps: int = 0

    def __str__(self) -> str:
        return f"{self.who} {self.what}"


class RoundEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a round went. ``steps`` is how many its fastest member has done in it; ``first`` the number
    that the framework itself gave to the first of them (an optimizer that was loaded from a
    checkpoint counts on), None where it does not tell; ``saved`` how many of the steps it had done when it
    last wrote a checkpoint, and ``restored`` when it read one, -1 where it did not, None where that is not
    seen; ``findings`` are codes; ``final``: it was ended because one of its tasks is not to be started
    again."""

    number: int
    outcome: Outcome
    reason: str
    seconds: float
    steps: int = 0
    first: int | None = None
    saved: int | None = None
    restored: int | None = None
    cause: Cause | None = None
    findings: tuple[str, ...] = ()
    final: bool = False

    @property
    def reached(self) -> int | None:
        """The last step, counted over all rounds; None where that is not known."""
        if self.first is None:
            return None
        return self.first + self.steps - 1 if self.steps else None


class TaskReturn(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a job with parameter servers that was started again alone ("ps-0"): what it ended of, why
    it was started again, and the ``seconds`` from its end until it had joined the cluster again, None
    where it did not. ``fell_with`` is the task whose end made it end too ("ps-0"), "" where it ended by
    itself, was killed or stopped. Of a server also: ``out``, the seconds from its end until somebody who
    trains did a step again; ``snapshot``, how old (s) at its end the snapshot was from which its values came
    back, None where they came from none. ``lost`` are the steps by which the training went back for it, by
    the framework's own count, else those of all who train since the snapshot; None where neither is
    known."""

    task: str
    cause: str
    decision: str
    fell_with: str = ""
    seconds: float | None = None
    out: float | None = None
    snapshot: float | None = None
    lost: int | None = None

    @property
    def recovery(self) -> str:
        """How the return went, as a clause: ``there again after 3.1 s, 40 steps lost``; "" if nothing is known."""
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


class RoundReport(RoundEnd, frozen=True, kw_only=True):
    """A round, and what was decided after it: ``decision`` says it with its reason; ``again`` whether
    another round was started, ``delay`` s later. ``repeated`` are the steps that this round had to do
    again, since its checkpoint was older than the end of the round before (at most so many, where
    the framework does not number its steps); None where that is not known."""

    decision: str
    again: bool
    delay: float = 0.0
    repeated: int | None = None
