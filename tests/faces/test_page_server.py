"""The page server: who is let in, what it serves, and how it ends."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import WSMsgType

from allaboard.faces.web.page_server import CLOSE_NO_TOKEN, MAX_CLIENTS, PageSettings
from allaboard.faces.web.serve_run import NO_STACKS, serve_run
from watched import PlayedSource, hanging_snapshot

TOKEN = "the-token"
NAMES = frozenset({"127.0.0.1"})


@asynccontextmanager
async def serving(
    source: PlayedSource, ends: bool = False
) -> AsyncIterator[tuple[str, asyncio.Task[None]]]:
    listener = socket.create_server(("127.0.0.1", 0))
    started = asyncio.Event()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    settings = PageSettings(listener, TOKEN, NAMES)
    task = asyncio.create_task(
        serve_run(source, settings, str, ends_with_run=ends, on_start=started.set)
    )
    await started.wait()
    try:
        yield address, task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def with_server(
    source: PlayedSource, scenario: Callable[[str, aiohttp.ClientSession], Awaitable[None]]
) -> None:
    async def run() -> None:
        async with (
            asyncio.timeout(30),
            serving(source) as (address, _),
            aiohttp.ClientSession() as session,
        ):
            await scenario(address, session)

    asyncio.run(run())


async def read_until(page: aiohttp.ClientWebSocketResponse, kind: str) -> dict[str, object]:
    async for message in page:
        answer: dict[str, object] = json.loads(message.data)
        if answer["kind"] == kind:
            return answer
    raise AssertionError(f"closed ({page.close_code}) before {kind}")


async def log_in(session: aiohttp.ClientSession, address: str) -> aiohttp.ClientWebSocketResponse:
    page = await session.ws_connect(f"{address}/live")
    await page.send_json({"kind": "login", "token": TOKEN})
    return page


def test_only_its_own_files_are_served_and_all_are_locked_down() -> None:
    async def scenario(address: str, session: aiohttp.ClientSession) -> None:
        paths = {"/": 200, "/main.js": 200, "/vendor/uPlot.esm.js": 200, "/../__init__.py": 404}
        paths |= {"/%2e%2e/page_server.py": 404, "/vendor/VENDORED.json": 404, "/nothing": 404}
        for path, status in paths.items():
            async with session.get(f"{address}{path}") as answer:
                assert answer.status == status, path
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy and "trusted-types 'none'" in policy
                assert "unsafe" not in policy and "http" not in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
        async with session.get(address, headers={"Host": "evil.example"}) as answer:
            assert answer.status == 421
        async with session.post(address) as answer:
            assert answer.status == 405

    with_server(PlayedSource(hanging_snapshot()), scenario)


def test_nothing_is_told_without_the_token() -> None:
    async def scenario(address: str, session: aiohttp.ClientSession) -> None:
        first_words = ('{"kind":"login","token":"wrong"}', '{"kind":"stacks"}', "nonsense")
        for text in first_words:
            async with session.ws_connect(f"{address}/live") as page:
                await page.send_str(text)
                message = await page.receive()
                assert message.type is WSMsgType.CLOSE and page.close_code == CLOSE_NO_TOKEN, text
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await session.ws_connect(f"{address}/live", origin="http://evil.example")

    source = PlayedSource(hanging_snapshot())
    with_server(source, scenario)
    assert source.requests == 0 and source.is_closed


def test_a_page_is_sent_everything_and_its_requests_are_answered() -> None:
    async def scenario(address: str, session: aiohttp.ClientSession) -> None:
        page = await log_in(session, address)
        kinds = set()
        while "picture" not in kinds:
            kinds.add(json.loads((await page.receive()).data)["kind"])
        assert kinds >= {"source", "members", "findings", "pages", "course", "notes", "picture"}
        await page.send_str("no request")
        await page.send_json({"kind": "view", "metric": "waiting", "selected": 1})
        assert (await read_until(page, "picture"))["metric"] == "waiting"
        await page.send_json({"kind": "lanes", "start": 0, "count": 2})
        assert (await read_until(page, "lanes"))["names"] == ["worker 0", "worker 1"]
        await page.send_json({"kind": "stacks"})
        assert (await read_until(page, "stacks"))["sampled"] == 3
        await page.send_str("x" * 100_000)  # too long: this page alone is closed
        assert (await page.receive()).type in (WSMsgType.CLOSE, WSMsgType.CLOSED)
        again = await log_in(session, address)
        assert await read_until(again, "picture")

    with_server(PlayedSource(hanging_snapshot(), is_live=False), scenario)


def test_without_an_agent_there_are_no_stacks_and_it_says_so() -> None:
    class Gone(PlayedSource):
        def request_stacks(self) -> int:
            return 0

    async def scenario(address: str, session: aiohttp.ClientSession) -> None:
        page = await log_in(session, address)
        await page.send_json({"kind": "stacks"})
        assert (await read_until(page, "stacks"))["refusal"] == NO_STACKS

    with_server(Gone(hanging_snapshot()), scenario)


def test_pages_that_go_or_are_too_many_leave_it_standing() -> None:
    async def scenario(address: str, session: aiohttp.ClientSession) -> None:
        pages = [await log_in(session, address) for _ in range(MAX_CLIENTS)]
        for page in pages:
            await read_until(page, "source")
        surplus = await log_in(session, address)
        assert (await surplus.receive()).type is WSMsgType.CLOSE and surplus.close_code == 4429
        pages[0]._response.close()  # a browser that is killed says nothing
        await pages[1].close()
        await asyncio.sleep(0)
        async with asyncio.timeout(10):
            while True:
                page = await log_in(session, address)
                if (await page.receive()).type is WSMsgType.TEXT:
                    break

    with_server(PlayedSource(hanging_snapshot()), scenario)


def test_it_ends_with_its_run_after_a_last_look() -> None:
    async def run() -> None:
        source = PlayedSource(hanging_snapshot())
        async with serving(source, ends=True) as (_, task):
            async with asyncio.timeout(10):
                await task
        assert source.is_closed

    asyncio.run(run())
