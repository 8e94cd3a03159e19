"""A refusal counts as proved only if whoever refuses knows the job's secret."""

from __future__ import annotations

import asyncio

import pytest

from allaboard.cluster.deputy import ask_task
from allaboard.cluster.deputy_choice import TaskAnswer
from allaboard.cluster.rendezvous_ports import LEADERLESS, NO_MEETING, NO_MEETING_KIND
from allaboard.cluster.succession import ask_agent
from allaboard.cluster.succession_choice import AgentAnswer
from allaboard.cluster.transport.client_handshake import (
    HandshakeRefusedError,
    Identity,
    shake_hands,
)
from allaboard.cluster.transport.connect_probe import connect_and_greet
from allaboard.cluster.transport.listener import Listener
from impostor import FOLLOWS, Impostor
from rally import SECRET


async def refusal(address: str, who: Identity) -> HandshakeRefusedError:
    """The refusal that this host gets there."""
    met = await connect_and_greet(address)
    assert met.writer is not None
    try:
        await shake_hands(met, who)
    except HandshakeRefusedError as error:
        return error
    finally:
        met.writer.close()
    raise AssertionError("admitted")


def identity(job: str = "job=1", secret: bytes = SECRET) -> Identity:
    return Identity(job, secret, "h1", 1, "127.0.0.1:1", "session")


async def with_listener(secret: bytes, who: Identity, reason: str = "") -> HandshakeRefusedError:
    listener = Listener(
        "job=1", secret, lambda _: None, lambda *_: None, lambda _: None, redirect_reason=reason
    )
    await listener.open_port(0, "127.0.0.1")
    try:
        return await refusal(f"127.0.0.1:{listener.port}", who)
    finally:
        listener.close()


def test_a_listener_with_the_secret_proves_its_refusal() -> None:
    error = asyncio.run(with_listener(SECRET, identity("job=2")))
    assert (error.kind, error.is_proven) == ("other-job", True)
    error = asyncio.run(with_listener(SECRET, identity(), FOLLOWS))
    assert (error.kind, error.is_proven) == ("elsewhere", True)


def test_without_a_secret_nobody_proves_anything() -> None:
    error = asyncio.run(with_listener(b"", identity("job=2", b"")))
    assert (error.kind, error.is_proven) == ("other-job", False)


def test_whoever_does_not_know_it_says_so_without_proof() -> None:
    error = asyncio.run(with_listener(b"other", identity()))
    assert (error.kind, error.is_proven) == ("no-secret", False)


def test_an_impostor_neither_proves_its_refusal_nor_says_who_leads() -> None:
    async def main() -> tuple[HandshakeRefusedError, TaskAnswer]:
        async with Impostor() as impostor:
            error = await refusal(impostor.address, identity())
            answer, _ = await ask_task(impostor.address, identity())
            return error, answer

    error, answer = asyncio.run(main())
    assert (error.kind, error.is_proven) == ("elsewhere", False)
    assert answer is TaskAnswer.OTHER


@pytest.mark.parametrize(
    ("kind", "expected"), [(NO_MEETING_KIND, AgentAnswer.FOLLOWS), (LEADERLESS, AgentAnswer.WAITS)]
)
def test_only_an_agent_of_the_job_says_that_it_follows_or_waits(
    kind: str, expected: AgentAnswer
) -> None:
    async def main() -> tuple[AgentAnswer, AgentAnswer]:
        async with Impostor(kind, NO_MEETING) as impostor:
            unproved, _ = await ask_agent(impostor.address, identity())
        listener = Listener(
            "job=1", SECRET, lambda _: None, lambda *_: None, lambda _: None,
            redirect_reason=NO_MEETING, redirect_kind=kind,
        )  # fmt: skip
        await listener.open_port(0, "127.0.0.1")
        try:
            proved, _ = await ask_agent(f"127.0.0.1:{listener.port}", identity())
        finally:
            listener.close()
        return unproved, proved

    assert asyncio.run(main()) == (AgentAnswer.OTHER, expected)
