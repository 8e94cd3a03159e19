"""The time in which a server was out, and what was lost by it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import msgspec

from allaboard.analysis.parameter_servers.parameter_servers import trainers
from allaboard.coordinator.trackers.step_history import StepHistory
from allaboard.facts import JobView, TaskReturn
from allaboard.protocol.events import SnapshotTaken

RESTORED = "restored"
"""The note in which the chief's hook tells from which snapshot it made its session."""
HINDERED, NOT_RESTORED = "snapshot", "not restored: "
"""The note in which it tells that it could not, and how that begins."""


class ServerDowntime(msgspec.Struct, frozen=True, kw_only=True):
    """It ended ``at``, when those who train had done so many ``steps``; ``made`` is the place of its return
    among those of this round; ``served``: it was a server; ``before`` is what chiefs had told by then of
    snapshots that they restored."""

    ended_at: float
    return_index: int
    steps: int
    is_server: bool
    earlier_notes: frozenset[str] = frozenset()

    def restore_failure(self, view: JobView) -> str:
        """Why no snapshot was restored, as the chief tells it; "" where it tells nothing."""
        said = (text for text in restore_failures(view) if text not in self.earlier_notes)
        return next((text.removeprefix(NOT_RESTORED) for text in said), "")

    def with_restored_snapshot(
        self, view: JobView, made: TaskReturn, kept: Mapping[int, SnapshotTaken], tally: StepHistory
    ) -> TaskReturn:
        """The return with what the chief says of where the values came from."""
        snapshot = kept.get(_number(view, self.earlier_notes))
        if snapshot is None or snapshot.at > self.ended_at:
            return made
        before = tally.steps_at(snapshot.at)
        return msgspec.structs.replace(
            made,
            snapshot=round(self.ended_at - snapshot.at, 3),
            lost=made.lost if made.lost is not None else _since(self.steps, before),
        )


def _since(steps: int, before: int | None) -> int | None:
    return max(0, steps - before) if before is not None else None


def restored_snapshots(view: JobView) -> Iterator[str]:
    """What chiefs have told of the snapshots that they restored: of each in words of its own."""
    return (m.notes[RESTORED] for m in trainers(view) if RESTORED in m.notes)


def restore_failures(view: JobView) -> Iterator[str]:
    """What chiefs have told of the snapshots that they could not restore, likewise."""
    said = (m.notes.get(HINDERED, "") for m in trainers(view))
    return (text for text in said if text.startswith(NOT_RESTORED))


def _number(view: JobView, before: frozenset[str]) -> int:
    """Of the snapshot that a chief restored since these were told; -1 for none. (Its clock may be another
    host's.)"""
    for said in restored_snapshots(view):
        try:
            if said not in before:
                return int(json.loads(said)["number"])
        except (ValueError, TypeError, KeyError):
            continue
    return -1
