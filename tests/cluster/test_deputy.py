"""Where the tasks of a cluster meet while the first one has not started."""

from __future__ import annotations

import asyncio

import pytest

from allaboard.cluster.deputy import ask_task
from allaboard.cluster.deputy_choice import FIRST, DeputyStep, TaskAnswer, choose_deputy
from allaboard.cluster.rendezvous_ports import FOLLOWS_FIRST
from allaboard.cluster.transport.client_handshake import Identity
from allaboard.cluster.transport.listener import Listener
from allaboard.cluster.transport.member_connection import MemberConnection
from allaboard.facts import Knock

ABSENT, WAITS, LEADS = TaskAnswer.ABSENT, TaskAnswer.WAITS, TaskAnswer.LEADS
IDENTITY = Identity("", b"", "h1", 1, "", "a session")


@pytest.mark.parametrize(
    ("own", "answers", "expected"),
    [
        pytest.param(1, [ABSENT, WAITS, WAITS], DeputyStep(leads=True), id="the lowest leads"),
        pytest.param(2, [ABSENT, WAITS, WAITS], DeputyStep(waits=True), id="the next one waits"),
        pytest.param(2, [ABSENT, LEADS, WAITS], DeputyStep(follows=1), id="and follows it"),
        pytest.param(2, [ABSENT, ABSENT, WAITS], DeputyStep(leads=True), id="two are absent"),
        pytest.param(
            1, [ABSENT, WAITS, LEADS], DeputyStep(leads=True), id="a lower one came later"
        ),
        pytest.param(1, [LEADS, WAITS, WAITS], FIRST, id="the first one has come"),
        pytest.param(1, [WAITS, WAITS, WAITS], FIRST, id="the first one is up and about to lead"),
        pytest.param(
            1, [ABSENT, WAITS, TaskAnswer.FOLLOWS_FIRST], FIRST, id="only we cannot reach it"
        ),
        pytest.param(
            1, [TaskAnswer.OTHER, WAITS, WAITS], FIRST, id="the framework is there without an agent"
        ),
    ],
)
def test_who_leads(own: int, answers: list[TaskAnswer], expected: DeputyStep) -> None:
    assert choose_deputy(own, answers) == expected


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([ABSENT, LEADS, WAITS], DeputyStep(follows=1), id="its host leads"),
        pytest.param([ABSENT, WAITS, WAITS], DeputyStep(waits=True), id="its host is about to"),
        pytest.param([ABSENT, ABSENT, WAITS], DeputyStep(waits=True), id="its host is not up yet"),
        pytest.param(
            [ABSENT, TaskAnswer.FOLLOWS_FIRST, WAITS], FIRST, id="its host has found the first"
        ),
    ],
)
def test_the_second_process_of_a_host_never_leads(
    answers: list[TaskAnswer], expected: DeputyStep
) -> None:
    assert choose_deputy(1, answers, may_lead=False) == expected


async def _ask(reason: str, kind: str = "elsewhere") -> tuple[TaskAnswer, int, int]:
    """Return the answer, and how many members and strangers the listener reported."""
    members: list[MemberConnection] = []
    strangers: list[Knock] = []
    listener = Listener(
        "", b"", members.append, lambda m, w: None, strangers.append, None, 0, reason, kind
    )
    await listener.open_port(0)
    answer, _ = await ask_task(f"127.0.0.1:{listener.port}", IDENTITY)
    await asyncio.sleep(0.05)
    listener.close()
    return answer, len(members), len(strangers)


@pytest.mark.parametrize(
    ("reason", "kind", "expected"),
    [
        ("", "elsewhere", TaskAnswer.LEADS),
        ("goes to h0:1", "elsewhere", TaskAnswer.WAITS),
        ("goes to h0:1" + FOLLOWS_FIRST, "elsewhere", TaskAnswer.FOLLOWS_FIRST),
        ("a port for links", "no-meeting", TaskAnswer.OTHER),
    ],
)
def test_a_question_makes_nobody_a_member_or_a_stranger(
    reason: str, kind: str, expected: TaskAnswer
) -> None:
    assert asyncio.run(_ask(reason, kind)) == (expected, 0, 0)


def test_where_nothing_listens_the_task_is_absent_and_a_web_server_is_none() -> None:
    async def ask_others() -> tuple[TaskAnswer, TaskAnswer]:
        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        other, _ = await ask_task(f"127.0.0.1:{port}", IDENTITY)
        server.close()
        absent, _ = await ask_task("127.0.0.1:1", IDENTITY)
        return absent, other

    assert asyncio.run(ask_others()) == (TaskAnswer.ABSENT, TaskAnswer.OTHER)
