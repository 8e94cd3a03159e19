"""A run is followed to its end, however often its feed cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from allaboard.faces.sidecar.lasting_source import TRIES_BEFORE_NOTE, LastingSource
from allaboard.faces.sidecar.problem_notes import MAX_LENGTH, MAX_NOTES, ProblemNotes
from allaboard.faces.watch.run_source import SourceChanged
from allaboard.feed.messages import FeedError, Message, Note

NOTE = Note(noted_at="t", text="x")


class Try:
    """One attempt to read a feed: what comes, and whether it fails then."""

    def __init__(self, *messages: Message, fails: bool = False) -> None:
        self._messages, self._fails = messages, fails
        self.is_closed = False

    async def messages(self) -> AsyncIterator[Message | SourceChanged]:
        for message in self._messages:
            yield message
        if self._fails:
            raise FeedError("it does not answer")

    def close(self) -> None:
        self.is_closed = True


def follow(*tries: Try) -> tuple[list[Message | SourceChanged], list[str]]:
    notes: list[str] = []
    left = iter(tries)

    async def run() -> list[Message | SourceChanged]:
        source = LastingSource(lambda: next(left), "metrics", ProblemNotes(notes.append), 0.0)
        return [m async for m in source.messages()]

    messages = asyncio.run(run())
    assert next(left, None) is None and all(t.is_closed for t in tries)
    return messages, notes


def test_a_feed_that_does_not_answer_for_a_moment_is_asked_again() -> None:
    tries = [Try(fails=True) for _ in range(TRIES_BEFORE_NOTE - 1)]
    assert follow(*tries, Try(NOTE, fails=True), Try(NOTE)) == ([NOTE, NOTE], [])


def test_a_feed_that_does_not_answer_for_long_is_said_once() -> None:
    tries = [Try(fails=True) for _ in range(TRIES_BEFORE_NOTE + 5)]
    messages, notes = follow(*tries, Try(NOTE))
    assert messages == [NOTE] and notes == [
        "metrics are not reported: the feed cannot be read (it does not answer); trying again",
        "metrics are reported again",
    ]


def test_notes_are_bounded_and_said_once() -> None:
    lines: list[str] = []
    notes = ProblemNotes(lines.append)
    notes.report("port", "a\nb" + "c" * 5000)
    notes.report("port", "again")
    notes.resolve("port", "free")
    notes.resolve("port", "free")
    assert [line[:3] for line in lines] == ["a b", "fre"] and len(lines[0]) == MAX_LENGTH
    for number in range(100):
        notes.write(str(number))
    assert len(lines) == MAX_NOTES
