"""The server's end of the stream to one browser."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

from aiohttp import web

from allaboard.faces.web.page_messages import View
from allaboard.faces.web.page_state import PageState


class PageClient:
    """Sends one browser the newest of everything. What a slow one has not taken is replaced by what is newer,
    so that it costs no memory and nobody waits for it."""

    def __init__(self, socket: web.WebSocketResponse, state: PageState) -> None:
        self._socket, self._state = socket, state
        self._unsent: dict[str, bytes | None] = {}
        self._has_unsent = asyncio.Event()
        self.view = View()

    def notify(self, kinds: Iterable[str]) -> None:
        """Let the newest messages of these kinds be sent."""
        for kind in kinds:
            self._unsent[kind] = None
        self._has_unsent.set()

    def send(self, kind: str, message: bytes) -> None:
        """Let this message be sent, in place of an older one of its kind."""
        self._unsent[kind] = message
        self._has_unsent.set()

    async def run(self) -> None:
        """Send until the browser has gone."""
        with contextlib.suppress(ConnectionError):
            while not self._socket.closed:
                await self._has_unsent.wait()
                self._has_unsent.clear()
                while self._unsent:
                    kind = next(iter(self._unsent))
                    message = self._unsent.pop(kind)
                    if message is None:
                        message = self._newest(kind)
                    if message is not None:
                        await self._socket.send_str(message.decode())

    @property
    def is_idle(self) -> bool:
        """True if the browser has been sent everything."""
        return not self._unsent

    def _newest(self, kind: str) -> bytes | None:
        if kind == "picture":
            return self._state.picture(self.view)
        return self._state.messages.get(kind)
