"""The time in which a server was out, and what was lost by it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec

from allaboard.coordinator.events import Kept
from allaboard.coordinator.tally import Tally
from allaboard.evidence.servers import trainers
from allaboard.facts import JobView, TaskReturn

RESTORED = "restored"
"""The note in which the chief's hook tells from which snapshot it made its session."""


class Absence(msgspec.Struct, frozen=True, kw_only=True):
    """It ended ``at``, when those who train had done so many ``steps``; ``made`` is the place of its return
    among those of this round; ``served``: it was a server."""

    at: float
    made: int
    steps: int
    served: bool

    def restored(
        self, view: JobView, made: TaskReturn, kept: Mapping[int, Kept], tally: Tally
    ) -> TaskReturn:
        """The return with what the chief says of where the values came from."""
        snapshot = kept.get(_number(view, since=self.at))
        if snapshot is None or snapshot.at > self.at:
            return made
        before = tally.at(snapshot.at)
        return msgspec.structs.replace(
            made,
            snapshot=round(self.at - snapshot.at, 3),
            lost=made.lost if made.lost is not None else _since(self.steps, before),
        )


def _since(steps: int, before: int | None) -> int | None:
    return max(0, steps - before) if before is not None else None


def _number(view: JobView, since: float) -> int:
    """Of the snapshot that a chief restored after this moment; -1 for none."""
    for member in trainers(view):
        try:
            told = json.loads(member.notes.get(RESTORED, ""))
            if float(told["when"]) > since:
                return int(told["number"])
        except (ValueError, TypeError, KeyError):
            continue
    return -1


def told(made: TaskReturn) -> str:
    """How a return went, in a line."""
    parts = []
    if made.seconds is not None:
        parts.append(f"there again after {made.seconds:.1f} s")
    if made.out is not None:
        parts.append(f"next step after {made.out:.1f} s")
    if made.snapshot is not None:
        parts.append(f"its values are those of {made.snapshot:.1f} s before its end")
    if made.lost is not None:
        parts.append(f"{made.lost} step{'s' if made.lost != 1 else ''} lost")
    return ", ".join(parts)
