"""Serves the page and its websocket. It reads the feed like any other client, in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from socket import socket as Socket
from typing import NamedTuple

from aiohttp import WSMsgType, web

from allaboard.faces.web.page_access import HEADERS, is_expected_host, is_same_origin, tokens_match
from allaboard.faces.web.page_client import PageClient
from allaboard.faces.web.page_messages import (
    LanesRequest,
    Login,
    PageStacksRequest,
    View,
    decode_page_request,
)
from allaboard.faces.web.page_state import PageState

LOGIN_TIMEOUT_S = 10.0
"""Seconds that a page has to send its token."""
MAX_CLIENTS = 32
"""Pages at a time."""
MAX_REQUEST_NBYTES = 1 << 14
HEARTBEAT_S = 20.0
"""Seconds between two signs of life, by which a browser that has gone is noticed."""
CLOSE_NO_TOKEN, CLOSE_TOO_MANY = 4401, 4429
"""Close codes (4000-4999 are free for applications, RFC 6455 section 7.4.2)."""
CONTENT_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


class PageSettings(NamedTuple):
    """What a page server is made with."""

    listener: Socket
    """The socket on which it listens."""
    token: str
    """What a page must know."""
    host_names: frozenset[str] = frozenset()
    """Names by which a browser may ask for it; none: any."""
    tls: ssl.SSLContext | None = None
    """Certificate of this host; None for plain HTTP."""


class PageServer:
    """The pages that are open, and what they are sent. ``on_stacks`` is called when one asks for stacks."""

    def __init__(
        self, state: PageState, settings: PageSettings, on_stacks: Callable[[], None]
    ) -> None:
        self._state, self._settings, self._on_stacks = state, settings, on_stacks
        self._clients: dict[PageClient, web.WebSocketResponse] = {}
        self._assets = _read_assets()
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen."""
        application = web.Application(middlewares=[self._guard])
        application.router.add_get("/", self._send_asset)
        application.router.add_get("/live", self._serve_socket)
        application.router.add_get("/{name:.+}", self._send_asset)
        self._runner = web.AppRunner(application, access_log=None, handle_signals=False)
        await self._runner.setup()
        settings = self._settings
        await web.SockSite(self._runner, settings.listener, ssl_context=settings.tls).start()

    def notify(self, kinds: tuple[str, ...]) -> None:
        """Let all pages be sent the newest messages of these kinds."""
        for client in self._clients:
            client.notify(kinds)

    async def close(self, grace_s: float) -> None:
        """Let the pages read the last messages for a moment, and close everything."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while not all(client.is_idle for client in self._clients):
                    await asyncio.sleep(0.05)
        for socket in list(self._clients.values()):
            with contextlib.suppress(ConnectionError, TimeoutError):
                await asyncio.wait_for(socket.close(code=1001, message=b"the run has ended"), 1.0)
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if not is_expected_host(request.host, self._settings.host_names):
            return web.Response(status=421, text="This page has another address.", headers=HEADERS)
        try:
            return await handler(request)
        except web.HTTPException as error:
            return web.Response(status=error.status, text=error.reason, headers=HEADERS)

    async def _send_asset(self, request: web.Request) -> web.Response:
        asset = self._assets.get(request.match_info.get("name", "index.html"))
        if asset is None:
            return web.Response(status=404, text="There is no such page.", headers=HEADERS)
        content_type, content = asset
        return web.Response(
            body=content, content_type=content_type, charset="utf-8", headers=HEADERS
        )

    async def _serve_socket(self, request: web.Request) -> web.StreamResponse:
        origin = request.headers.get("Origin")
        if not is_same_origin(origin, request.host, self._settings.tls is not None):
            return web.Response(status=403, text="Not from that page.", headers=HEADERS)
        socket = web.WebSocketResponse(
            heartbeat=HEARTBEAT_S, max_msg_size=MAX_REQUEST_NBYTES, compress=False
        )
        await socket.prepare(request)
        if not await self._is_logged_in(socket):
            await socket.close(code=CLOSE_NO_TOKEN, message=b"the token is not that of this page")
        elif len(self._clients) >= MAX_CLIENTS:
            await socket.close(code=CLOSE_TOO_MANY, message=b"too many pages are open")
        else:
            await self._serve_client(socket)
        return socket

    async def _is_logged_in(self, socket: web.WebSocketResponse) -> bool:
        try:
            message = await socket.receive(LOGIN_TIMEOUT_S)
        except TimeoutError:
            return False
        if message.type is not WSMsgType.TEXT:
            return False
        login = decode_page_request(message.data)
        return isinstance(login, Login) and tokens_match(login.token, self._settings.token)

    async def _serve_client(self, socket: web.WebSocketResponse) -> None:
        client = PageClient(socket, self._state)
        self._clients[client] = socket
        client.notify([*self._state.messages, "picture"])
        sending = asyncio.create_task(client.run())
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    self._answer(client, message.data)
        finally:
            del self._clients[client]
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    def _answer(self, client: PageClient, text: str) -> None:
        """Do what a page asks for. What is no request is ignored."""
        match decode_page_request(text):
            case View() as view:
                client.view = view
                client.notify(["picture"])
            case LanesRequest() as lanes:
                client.send("lanes", self._state.lanes(lanes.start, lanes.count))
            case PageStacksRequest():
                self._on_stacks()
            case _:
                pass


def _read_assets() -> dict[str, tuple[str, bytes]]:
    """Return the files of the page by their path in the URL. They are few, and nothing else is served."""
    folder = Path(str(files("allaboard.faces.web") / "assets"))
    return {
        path.relative_to(folder).as_posix(): (CONTENT_TYPES[path.suffix], path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.suffix in CONTENT_TYPES
    }
