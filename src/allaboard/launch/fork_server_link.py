"""The reaper's end of the process that has imported for all workers and forks them
(`serving/fork_server.py`).

Requests go one at a time: as long as that process imports it reads nothing, and what is sent to it would fill
the socket, and hold the reaper.
"""

from __future__ import annotations

import json
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

FORK_SERVER_NUMBER = -3
"""Its number in the reaper's messages; workers count from 0."""
WARM_VARIABLE = "ALLABOARD_WARM"
"""Variable that it is started with, and so each process that it forks: /proc/PID/environ shows it, and not
what such a process was given later."""
DESCRIPTOR_ARGUMENT = 2
"""Place in its command of the descriptor of its socket, which the reaper fills in."""
ANSWER_BYTES = 1 << 12

SendRequest = Callable[[socket.socket, dict[str, Any], list[int]], None]


class ForkRequest(NamedTuple):
    """A worker that is to be forked: the agent's message, and the two descriptors of its output."""

    message: dict[str, Any]
    fds: list[int]


class ForkServerLink:
    """Passes on what is to be forked, and returns what came of it. ``send`` sends a message with its
    descriptors, however long it is; it raises OSError."""

    def __init__(self, end: socket.socket, send: SendRequest) -> None:
        self._end = end
        self._send = send
        self._asked: deque[ForkRequest] = deque()
        self.why_unfit = ""
        """Why that process has forked no more, in its own words."""
        self.is_open = True
        end.setblocking(False)

    def fileno(self) -> int:
        """Return the descriptor to be watched as long as it ``is_open``."""
        return self._end.fileno()

    def ask(self, request: ForkRequest) -> None:
        """Have this worker forked, after those before it. Its descriptors stay open until it is answered."""
        self._asked.append(request)
        if len(self._asked) == 1:
            self._send_first()

    def take_forked(self) -> list[tuple[ForkRequest, int]]:
        """Return the workers that have been forked since the last call, with their pids."""
        forked: list[tuple[ForkRequest, int]] = []
        while self.is_open:
            try:
                data = self._end.recv(ANSWER_BYTES)
            except BlockingIOError:
                return forked
            except OSError:  # ECONNRESET: killed with a request unread
                data = b""
            answer = json.loads(data) if data else {}
            if "pid" not in answer:
                self.why_unfit = answer.get("unfit", "")
                self.close()
                return forked
            forked.append((self._asked.popleft(), int(answer["pid"])))
            if self._asked:
                self._send_first()
        return forked

    def take_unserved(self) -> list[ForkRequest]:
        """Return those that will not be forked, once it is no longer open; they are the caller's again."""
        if self.is_open:
            return []
        unserved = list(self._asked)
        self._asked.clear()
        return unserved

    def drop_asked(self) -> list[int]:
        """Forget what is not forked yet, since the round ends, and be closed then; return those workers'
        numbers."""
        if self._asked:
            self.close()
        dropped = list(self._asked)
        self._asked.clear()
        for _, fds in dropped:
            for fd in fds:
                os.close(fd)
        return [int(message["worker"]) for message, _ in dropped]

    def close(self) -> None:
        """Ask nothing any more: that process exits."""
        self._end.close()
        self.is_open = False

    def _send_first(self) -> None:
        message, fds = self._asked[0]
        forwarded = {name: message[name] for name in ("worker", "environment", "folder")}
        try:
            self._send(self._end, forwarded, fds)
        except OSError:  # EPIPE: it has ended
            self.close()
