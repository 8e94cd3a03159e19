"""A link that fails is tried once more before anything is made of it."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from allaboard.cluster.transport import link_trial
from allaboard.cluster.transport.client_handshake import Identity
from allaboard.cluster.transport.link_trial import combine_trials, try_link
from allaboard.facts import Answer, Link

SILENT = Link(source="h0", target="h1", address="10.0.0.1:9", answer=Answer.SILENT)


def met(answer: Answer) -> Link:
    return msgspec.structs.replace(SILENT, answer=answer)


def test_one_that_works_the_second_time_works() -> None:
    assert combine_trials(SILENT, met(Answer.ABOARD)) == met(Answer.ABOARD)


def test_one_that_fails_twice_is_told_as_that() -> None:
    twice = combine_trials(SILENT, SILENT)
    assert twice.is_lasting and twice.description == "silent, twice"
    assert not SILENT.is_lasting and SILENT.description == "silent"


def test_no_answer_and_no_way_are_alike_and_large_ones_lost_is_something_else() -> None:
    assert combine_trials(SILENT, met(Answer.UNREACHABLE)).is_lasting
    assert not combine_trials(SILENT, met(Answer.CUT)).is_lasting
    assert not combine_trials(met(Answer.CUT), SILENT).is_lasting
    assert combine_trials(met(Answer.CUT), met(Answer.CUT)).is_lasting


async def _hung_up_on() -> tuple[int, Link]:
    """How often somebody came who is hung up on, and what he makes of it."""
    came = []

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(1)
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        link = await try_link(Identity("", b"", "h0", 0, ""), "h1", f"127.0.0.1:{port}")
    return len(came), link


def test_a_failure_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_trial, "RETRIAL_PAUSE_S", 0.0)
    came, link = asyncio.run(_hung_up_on())
    assert (came, link.answer, link.tries) == (2, Answer.CLOSED, 2)


def test_what_took_long_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_trial, "MAX_FIRST_TRIAL_S", 0.0)
    came, link = asyncio.run(_hung_up_on())
    assert (came, link.is_lasting) == (1, False)
