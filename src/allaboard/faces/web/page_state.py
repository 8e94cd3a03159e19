"""What the page server has seen of a run, ready to be sent. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from allaboard.faces.watch.activity_marks import MARKS
from allaboard.faces.watch.run_source import SourceChanged
from allaboard.faces.watch.watch_state import WatchState
from allaboard.faces.web.activity_timeline import ActivityTimeline
from allaboard.faces.web.page_messages import MAX_LANES, View
from allaboard.faces.web.picture import (
    findings_message,
    legend,
    members_message,
    shared_parts,
    view_parts,
)
from allaboard.facts import Branch, Snapshot
from allaboard.feed.messages import Course, Message, Note, Refused, SnapshotMessage, Stacks
from allaboard.feed.series import SeriesLine, SeriesMembers, SeriesPoint
from allaboard.report.plain_text import clean

_ENCODER = msgspec.json.Encoder()


class PageState:
    """The newest of everything, as messages for pages. ``page_of`` returns the page of a rule."""

    def __init__(self, page_of: Callable[[str], str]) -> None:
        self._page_of = page_of
        self._state = WatchState()
        self._timeline = ActivityTimeline()
        self._members: tuple[str, ...] = ()
        self._series_members = SeriesMembers()
        self._pages: dict[str, str] = {}
        self._shared: dict[str, Any] = {}
        self.messages: dict[str, bytes] = {}
        """The newest message of each kind that every page is sent."""

    @property
    def snapshot(self) -> Snapshot | None:
        """The newest snapshot; None before the first one."""
        return self._state.snapshot

    def set_up(self, notice: str = "") -> None:
        """Note whether the source is live, and what the person has to know of it."""
        self._set(
            "source",
            text=clean(self._state.source),
            is_live=self._state.is_live,
            notice=clean(notice),
            legend=legend(),
        )

    def add_series(self, lines: Iterable[SeriesLine]) -> None:
        """Take in the time series of the run folder, from before this server started."""
        letter_of = {str(activity): mark.letter for activity, mark in MARKS.items()}
        for line in lines:
            if isinstance(line, SeriesMembers):
                self._series_members = line
            elif isinstance(line, SeriesPoint):
                members = self._series_members
                letters = [letter_of.get(members.activities[a], "?") for a in line.activity]
                if len(letters) == len(members.names):
                    names = [clean(name) for name in members.names]
                    self._timeline.add(line.elapsed_s, names, "".join(letters))

    def apply(self, message: Message | SourceChanged) -> tuple[str, ...]:
        """Take in a message of the feed; return the kinds of page messages that have changed. "picture" is
        one of them if there is a new snapshot."""
        self._state.apply(message)
        match message:
            case SnapshotMessage():
                return self._apply_snapshot(message.snapshot)
            case Course():
                self._set("course", points=tuple(self._state.points))
                return ("course",)
            case Note():
                return self._set_notes()
            case Stacks():
                return self.set_stacks(message)
            case Refused():
                self._set("stacks", refusal=clean(message.reason))
                return ("stacks",)
            case SourceChanged():
                self.set_up()
                self._set_notes()
                return "source", "notes"
            case _:
                return ()

    def set_stacks(self, stacks: Stacks | None, refusal: str = "") -> tuple[str, ...]:
        """Show these stacks, or why there are none; return the kinds that have changed."""
        if stacks is None:
            self._set("stacks", refusal=refusal)
        else:
            tree = [_branch(b) for b in stacks.tree]
            self._set(
                "stacks",
                tree=tree,
                sampled=stacks.sampled,
                sampled_at=stacks.sampled_at,
                missing=[clean(name) for name in stacks.missing],
            )
        return ("stacks",)

    def picture(self, view: View) -> bytes | None:
        """Return the newest snapshot as one page shows it; None before the first one."""
        if self.snapshot is None:
            return None
        parts = {"kind": "picture", **self._shared, **view_parts(self.snapshot, view)}
        return _ENCODER.encode(parts)

    def lanes(self, start: int, count: int) -> bytes:
        """Return the timelines of some ranks so far."""
        start = max(0, start)
        names = self._members[start : start + max(0, min(count, MAX_LANES))]
        times, lanes = self._timeline.lanes(names)
        return _ENCODER.encode(
            {"kind": "lanes", "start": start, "names": names, "times": times, "lanes": lanes}
        )

    def _apply_snapshot(self, snapshot: Snapshot) -> tuple[str, ...]:
        changed = ["picture"]
        members = members_message(snapshot)
        encoded = _ENCODER.encode(members)
        if encoded != self.messages.get("members"):
            self.messages["members"] = encoded
            self._members = tuple(members["names"])
            changed.insert(0, "members")
        self._shared = shared_parts(snapshot)
        self._timeline.add(snapshot.run.elapsed_s, self._members, self._shared["letters"])
        findings = _ENCODER.encode(findings_message(snapshot))
        if findings != self.messages.get("findings"):
            self.messages["findings"] = findings
            changed.append("findings")
        new_rules = {f.rule for f in snapshot.findings} - self._pages.keys()
        if new_rules:
            # Sent along, so that they can be read when this server has gone with its run.
            self._pages |= {clean(code): self._page_of(code) for code in new_rules}
            self._set("pages", pages=self._pages)
            changed.append("pages")
        self._set("course", points=tuple(self._state.points))  # for pages that come later
        return tuple(changed)

    def _set_notes(self) -> tuple[str, ...]:
        notes = [(note.noted_at, clean(note.text)) for note in self._state.notes]
        self._set("notes", notes=notes)
        return ("notes",)

    def _set(self, message_kind: str, **parts: Any) -> None:
        self.messages[message_kind] = _ENCODER.encode({"kind": message_kind, **parts})


def _branch(branch: Branch) -> dict[str, Any]:
    """Return a branch of a stack tree with neutralised text."""
    calls = [
        {
            "file": clean(call.file),
            "line": call.line,
            "function": clean(call.function),
            "text": clean(call.text),
            "is_own": call.is_user,
        }
        for call in branch.calls
    ]
    return {
        "ranks": branch.ranks,
        "others": [clean(name) for name in branch.others],
        "calls": calls,
        "below": [_branch(b) for b in branch.below],
    }
