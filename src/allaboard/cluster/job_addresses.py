"""The numeric addresses of all hosts of a job, where the framework's cluster names them all."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

MAX_HOSTS = 256
"""Hosts of a cluster up to which their names are looked up: each asks the name server."""


class JobAddresses:
    """Looks the addresses up once somebody wants to know them: not every host has to.

    ``hosts`` returns the names of all hosts, none if they are not known; ``run_beside`` runs a coroutine as a
    task.
    """

    def __init__(
        self, hosts: Callable[[], set[str]], run_beside: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self._hosts, self._run_beside = hosts, run_beside
        self._found: frozenset[str] | None = None
        self._is_looking = False

    def known_addresses(self) -> frozenset[str] | None:
        """Return the addresses of all hosts: none if they cannot be known, None while they are looked up."""
        hosts = self._hosts()
        if not hosts:
            return frozenset()
        if not self._is_looking:
            self._is_looking = True
            self._run_beside(self._look_up(hosts))
        return self._found

    async def _look_up(self, hosts: set[str]) -> None:
        self._found = await find_addresses(hosts)


async def find_addresses(hosts: Iterable[str]) -> frozenset[str]:
    """Return the numeric addresses of these hosts; none if one of the names cannot be found, since that host
    may be the one that comes."""
    names = sorted(set(hosts))
    if len(names) > MAX_HOSTS:
        return frozenset()
    loop = asyncio.get_running_loop()
    addresses: set[str] = set()
    for name in names:
        try:
            answers = await loop.getaddrinfo(name.strip("[]"), None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return frozenset()
        addresses.update(str(sockaddr[0]) for *_, sockaddr in answers)
    return frozenset(addresses)
