"""What a face has seen of a run so far. Pure."""

from __future__ import annotations

from collections import deque

from allaboard.faces.watch.run_source import SourceChanged
from allaboard.facts import Point, Snapshot
from allaboard.feed.build_snapshot import point_of
from allaboard.feed.course import MAX_POINTS
from allaboard.feed.messages import Course, Message, Note, Refused, SnapshotMessage, Stacks

MAX_NOTES = 500
"""Notes that are kept."""


class WatchState:
    """The newest of everything."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        self.points: deque[Point] = deque(maxlen=2 * MAX_POINTS)
        self.notes: deque[Note] = deque(maxlen=MAX_NOTES)
        self.stacks: Stacks | None = None
        self.stacks_refusal = ""
        self.source = ""
        self.is_live = False

    def apply(self, message: Message | SourceChanged) -> None:
        """Take in a message."""
        match message:
            case SnapshotMessage():
                self.snapshot = message.snapshot
                point = point_of(message.snapshot)
                if not self.points or point.elapsed_s > self.points[-1].elapsed_s:
                    self.points.append(point)
            case Course():
                self.points = deque(message.points, maxlen=2 * MAX_POINTS)
            case Note():
                self.notes.append(message)
            case Stacks():
                self.stacks, self.stacks_refusal = message, ""
            case Refused():
                self.stacks_refusal = message.reason
            case SourceChanged():
                self.source, self.is_live = message.text, message.is_live
                if message.is_live:
                    self.notes.clear()
            case _:
                pass  # findings are part of each snapshot
