"""The time in which a parameter server was out, and what was lost by it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import msgspec

from allaboard.analysis.parameter_servers import training_members
from allaboard.coordinator.trackers.step_history import StepHistory
from allaboard.facts import JobView, TaskReturn
from allaboard.protocol.events import SnapshotTaken

RESTORED_NOTE = "restored"
"""Note in which the probe in the chief reports from which snapshot the session was made."""
NOT_RESTORED_NOTE, NOT_RESTORED_PREFIX = "snapshot", "not restored: "
"""Note in which the probe reports that it could not restore one, and how that text begins."""


class ServerDowntime(msgspec.Struct, frozen=True, kw_only=True):
    """A task that ended and has been restarted alone, until it is back."""

    ended_at: float
    """When it ended (s)."""
    return_index: int
    """Index of its return among those of this round."""
    steps: int
    """Steps that all trainers together had made when it ended."""
    is_server: bool
    earlier_notes: frozenset[str] = frozenset()
    """Notes on restored snapshots that chiefs had left by then."""

    def restore_failure(self, view: JobView) -> str:
        """Return why no snapshot was restored, as the chief reports it; "" if it reports nothing."""
        failures = (text for text in restore_failures(view) if text not in self.earlier_notes)
        return next((text.removeprefix(NOT_RESTORED_PREFIX) for text in failures), "")

    def with_restored_snapshot(
        self,
        view: JobView,
        task_return: TaskReturn,
        snapshots: Mapping[int, SnapshotTaken],
        history: StepHistory,
    ) -> TaskReturn:
        """Return ``task_return`` with the age of the snapshot from which the values came back, and the lost
        steps; unchanged as long as the chief reports none."""
        snapshot = snapshots.get(_restored_number(view, self.earlier_notes))
        if snapshot is None or snapshot.taken_at > self.ended_at:
            return task_return
        lost = task_return.lost
        if lost is None:
            lost = _steps_since(self.steps, history.steps_at(snapshot.taken_at))
        age = round(self.ended_at - snapshot.taken_at, 3)
        return msgspec.structs.replace(task_return, snapshot=age, lost=lost)


def _steps_since(steps: int, steps_at_snapshot: int | None) -> int | None:
    return max(0, steps - steps_at_snapshot) if steps_at_snapshot is not None else None


def restored_snapshots(view: JobView) -> Iterator[str]:
    """Yield the notes that chiefs left on restored snapshots; each snapshot has a note of its own."""
    return (m.notes[RESTORED_NOTE] for m in training_members(view) if RESTORED_NOTE in m.notes)


def restore_failures(view: JobView) -> Iterator[str]:
    """Yield the notes that chiefs left on snapshots that they could not restore."""
    notes = (m.notes.get(NOT_RESTORED_NOTE, "") for m in training_members(view))
    return (text for text in notes if text.startswith(NOT_RESTORED_PREFIX))


def _restored_number(view: JobView, earlier_notes: frozenset[str]) -> int:
    """Return the number of the snapshot that a chief has restored since the earlier notes; -1 for none. (Its
    time would not do: the chief's clock may be another host's.)"""
    for note in restored_snapshots(view):
        try:
            if note not in earlier_notes:
                return int(json.loads(note)["number"])
        # Notes come out of the user's process, and may hold anything.
        except (ValueError, TypeError, KeyError):
            continue
    return -1
