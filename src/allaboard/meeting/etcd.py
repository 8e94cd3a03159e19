"""The seat as a key of etcd, created by a transaction, under a lease that its holder renews.

`etcd3gw` speaks etcd's JSON gateway; it comes with ``pip install 'allaboard[etcd]'`` and is imported
only here. User and certificates are those of etcdctl: ETCDCTL_USER, ETCDCTL_PASSWORD, ETCDCTL_CACERT,
ETCDCTL_CERT, ETCDCTL_KEY. Proxy variables are not followed: etcd is a host of the job's own network.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from allaboard.meeting.etcd_url import Etcd
from allaboard.meeting.seats import LEASE, Seat, Unusable

T = TypeVar("T")
ANSWER = 2.0
"""Seconds that one endpoint gets to answer."""
ROOT = "allaboard"


class Missing(Exception):
    """The client library is not installed."""


def clients(place: Etcd, environment: Mapping[str, str] = os.environ) -> list[Any]:
    """One for each endpoint; no connection is made yet. Raises Missing."""
    try:
        import requests
        from etcd3gw.client import Etcd3Client
    except ImportError as error:
        raise Missing(
            f"{place.text} wants etcd's client ({error}): pip install 'allaboard[etcd]'"
        ) from None
    made = []
    for host, port in place.endpoints:
        session = requests.Session()
        session.trust_env = False
        session.verify = environment.get("ETCDCTL_CACERT") or True
        if environment.get("ETCDCTL_CERT"):
            session.cert = (environment["ETCDCTL_CERT"], environment.get("ETCDCTL_KEY", ""))
        protocol = "https" if place.secure else "http"
        made.append(Etcd3Client(host, port, protocol, timeout=ANSWER, session=session))
    return made


class EtcdSeats:
    """``job`` is the launcher's id of this job: other jobs have other keys."""

    def __init__(self, place: Etcd, job: str, environment: Mapping[str, str] = os.environ) -> None:
        self._place = place
        self.key = "/".join(("", *filter(None, (ROOT, place.prefix, job or "job")), "seat"))
        self._job = job
        self._clients = clients(place, environment)
        user, _, password = environment.get("ETCDCTL_USER", "").partition(":")
        self._user = user, password or environment.get("ETCDCTL_PASSWORD", "")
        self._lease: Any = None

    async def who(self) -> Seat | None:
        return await self._ask(self._who)

    async def take(self, seat: Seat) -> bool:
        return await self._ask(lambda client: self._take(client, seat))

    async def keep(self) -> bool:
        return await self._ask(self._keep)

    def leave(self) -> None:
        asyncio.get_running_loop().run_in_executor(None, self._left)

    def _left(self) -> None:
        try:
            self._answered(self._leave)
        except Unusable:
            pass  # the lease ends by itself

    def _who(self, client: Any) -> Seat | None:
        found = client.get(self.key)
        if not found:
            return None
        try:
            seat = msgspec.json.decode(found[0], type=Seat)
        except (msgspec.DecodeError, UnicodeDecodeError):
            why = (
                f"its key {self.key} holds something else: {ascii(found[0][:40])[1:]}; "
                f"etcdctl del {self.key}, or another prefix"
            )
            raise Unusable("garbled", why, self._place.text) from None
        if seat.job != self._job:
            why = f"its key {self.key} is of job {seat.job or '(no id)'}; give another prefix"
            raise Unusable("other-job", why, self._place.text)
        return seat

    def _take(self, client: Any, seat: Seat) -> bool:
        lease = client.lease(math.ceil(LEASE))
        value = msgspec.json.encode(seat)
        if not client.create(self.key, value, lease):
            holder = self._who(client)
            if holder is None or holder.session != seat.session:
                lease.revoke()
                return False
            client.put(self.key, value, lease)  # ours: the answer to an earlier attempt was lost
        self._lease = lease
        return True

    def _keep(self, client: Any) -> bool:
        if self._lease is None:
            return False
        self._lease.client = client
        return int(self._lease.refresh()) > 0

    def _leave(self, client: Any) -> None:
        if self._lease is not None:
            self._lease.client = client
            self._lease.revoke()
            self._lease = None

    async def _ask(self, what: Callable[[Any], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, self._answered, what)

    def _answered(self, what: Callable[[Any], T]) -> T:
        """Of the first endpoint that can be reached, which is asked first from then on."""
        trouble = Unusable("unreachable", "no endpoint", self._place.text)
        for client in tuple(self._clients):
            try:
                if self._user[0] and "Authorization" not in client.session.headers:
                    self._log_in(client)
                answer = what(client)
            except Unusable:
                raise
            except Exception as error:  # the library lets those of requests and json through, too
                client.session.headers.pop("Authorization", None)  # a token may have expired
                trouble = self._trouble(client, error)
                if trouble.kind != "unreachable":
                    raise trouble from None
                continue
            if client is not self._clients[0]:
                self._clients.remove(client)
                self._clients.insert(0, client)
            return answer
        raise trouble

    def _log_in(self, client: Any) -> None:
        name, password = self._user
        told = client.post(
            client.get_url("/auth/authenticate"), json={"name": name, "password": password}
        )
        client.session.headers["Authorization"] = told["token"]

    def _trouble(self, client: Any, error: Exception) -> Unusable:
        kind, why = told(error)
        where = f"{client.host}:{client.port}"
        return Unusable(kind, f"{where}: {why}", self._place.text)


def told(error: Exception) -> tuple[str, str]:
    """What an exception of the client library means: kind and words."""
    detail = str(getattr(error, "detail_text", "") or "")
    try:
        answer = json.loads(detail)
        detail = str(answer["error"]) if "error" in answer else detail
    except (ValueError, TypeError, KeyError):
        pass
    low = f"{detail} {error}".lower()
    # etcd's own words; etcd/api/v3rpc/rpctypes/error.go
    if "authentication failed" in low or "invalid auth token" in low:
        return "auth", "it does not know this user or password (ETCDCTL_USER)"
    if "user name is empty" in low:
        return "auth", "it wants a user: set ETCDCTL_USER=name:password"
    if "permission denied" in low:
        return "auth", f"this user may not write keys under /{ROOT}: etcdctl role grant-permission"
    if "authentication is not enabled" in low:
        return "auth", "it knows no users; unset ETCDCTL_USER"
    if "certificate" in low or "ssl" in low:
        return "tls", f"TLS does not come about: {_root(detail or str(error))}"
    name = type(error).__name__
    if name in ("ConnectionFailedError", "ConnectionTimeoutError"):
        return "unreachable", _root(detail) or name
    if name in ("ApiVersionDiscoveryFailedError", "JSONDecodeError", "Etcd3Exception", "KeyError"):
        first = " ".join((detail or str(error) or name).split())[:80]
        return "no-etcd", f"what answers there is no etcd: {ascii(first)[1:-1]}"
    return "unreachable", detail[:200] or _root(str(error)) or name


def _root(text: str) -> str:
    """The system's own words, out of the words of several libraries around them."""
    for known in (
        "Connection refused",
        "No route to host",
        "Network is unreachable",
        "Name or service not known",
        "Temporary failure in name resolution",
        "No address associated with hostname",
        "Remote end closed connection",
        "Connection reset by peer",
    ):
        if known in text:
            return known.lower()
    if "timed out" in text.lower():
        return f"no answer in {ANSWER:g} s"
    return text.rpartition(": ")[2].strip("()'\" ")[:200]
