"""The seat as a key of etcd, created by a transaction, under a lease that its holder renews.

`etcd3gw` speaks etcd's JSON gateway; it comes with ``pip install 'allaboard[etcd]'`` and is imported
only here. User and certificates are those of etcdctl: ETCDCTL_USER, ETCDCTL_PASSWORD, ETCDCTL_CACERT,
ETCDCTL_CERT, ETCDCTL_KEY; where those say nothing, the certificates are the job's own (--tls-cert). Proxy
variables are not followed: etcd is a host of the job's own network.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections import deque
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, NamedTuple, TypeVar

import msgspec

from allaboard.cluster.transport.etcd_url import EtcdUrl
from allaboard.cluster.transport.leader_lease import LEASE_S, LeaderRecord, LeaseStoreError
from allaboard.cluster.transport.tls import TlsFiles
from allaboard.errors import AllaboardError

T = TypeVar("T")
ENDPOINT_TIMEOUT_S = 2.0
"""Seconds that one endpoint gets to answer."""
NEXT_ENDPOINT_AFTER_S = 0.5
"""Seconds after which the next endpoint is asked beside one that has not answered: as many as there
are that say nothing must not cost the lease."""
KEY_ROOT = "allaboard"
TLS_HINT = "; where it speaks TLS, write etcds://"
"""What may be behind it that it hangs up on a plain request."""
TOKEN_HEADER = "Authorization"
STALE_TOKEN_ERRORS = ("invalid auth token", "revision of auth store is old")
"""What etcd says of a token that it does not take any more; etcd/api/v3rpc/rpctypes/error.go."""


class MissingEtcdClientError(AllaboardError):
    """The client library is not installed."""


class EtcdTlsFiles(NamedTuple):
    """What TLS to etcd goes by: the authority that signed etcd's certificate ("": those of the system), and
    our own certificate with its key, "" where we show none."""

    ca: str
    cert: str
    key: str


def choose_tls_files(tls: TlsFiles | None, environment: Mapping[str, str]) -> EtcdTlsFiles:
    """etcdctl's variables first, each side by itself, then those of the job (``tls``)."""
    ours = (
        EtcdTlsFiles(str(tls.ca), str(tls.cert), str(tls.key))
        if tls is not None
        else EtcdTlsFiles("", "", "")
    )
    ca = environment.get("ETCDCTL_CACERT") or ours.ca
    cert, key = environment.get("ETCDCTL_CERT", ""), environment.get("ETCDCTL_KEY", "")
    return EtcdTlsFiles(ca, cert, key) if cert else EtcdTlsFiles(ca, ours.cert, ours.key)


def make_clients(
    place: EtcdUrl, environment: Mapping[str, str] = os.environ, tls: TlsFiles | None = None
) -> list[Any]:
    """One for each endpoint; no connection is made yet. Raises Missing."""
    try:
        import requests
        from etcd3gw.client import Etcd3Client
    except ImportError as error:
        raise MissingEtcdClientError(
            f"{place.text} wants etcd's client ({error}): pip install 'allaboard[etcd]'"
        ) from None
    made = []
    for host, port in place.endpoints:
        session = requests.Session()
        session.trust_env = False
        if place.secure:
            known = choose_tls_files(tls, environment)
            session.verify = known.ca or True
            if known.cert:
                session.cert = (known.cert, known.key)
        protocol = "https" if place.secure else "http"
        made.append(Etcd3Client(host, port, protocol, timeout=ENDPOINT_TIMEOUT_S, session=session))
    return made


class EtcdLeaseStore:
    """``job`` is the launcher's id of this job: other jobs have other keys."""

    def __init__(
        self,
        place: EtcdUrl,
        job: str,
        environment: Mapping[str, str] = os.environ,
        tls: TlsFiles | None = None,
    ) -> None:
        self._place = place
        self.key = "/".join(("", *filter(None, (KEY_ROOT, place.prefix, job or "job")), "seat"))
        self._job = job
        self._clients = make_clients(place, environment, tls)
        user, _, password = environment.get("ETCDCTL_USER", "").partition(":")
        self._user = user, password or environment.get("ETCDCTL_PASSWORD", "")
        self._lease: Any = None

    async def read_leader(self) -> LeaderRecord | None:
        return await self._any(self._who)

    async def acquire_lease(self, seat: LeaderRecord) -> bool:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, self._answered, lambda c: self._take(c, seat))

    async def renew_lease(self) -> bool:
        return await self._any(self._keep)

    def release_lease(self) -> None:
        asyncio.get_running_loop().run_in_executor(None, self._left)

    def _left(self) -> None:
        try:
            self._answered(self._leave)
        except LeaseStoreError:
            pass  # the lease ends by itself

    def _who(self, client: Any) -> LeaderRecord | None:
        found = client.get(self.key)
        if not found:
            return None
        try:
            seat = msgspec.json.decode(found[0], type=LeaderRecord)
        except (msgspec.DecodeError, UnicodeDecodeError):
            why = (
                f"its key {self.key} holds something else: {ascii(found[0][:40])[1:]}; "
                f"etcdctl del {self.key}, or another prefix"
            )
            raise LeaseStoreError("garbled", why, self._place.text) from None
        if seat.job != self._job:
            why = f"its key {self.key} is of job {seat.job or '(no id)'}; give another prefix"
            raise LeaseStoreError("other-job", why, self._place.text)
        return seat

    def _take(self, client: Any, seat: LeaderRecord) -> bool:
        lease = client.lease(math.ceil(LEASE_S))
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
        lease = copy(self._lease)  # another endpoint may be asked at the same time
        lease.client = client
        return int(lease.refresh()) > 0

    def _leave(self, client: Any) -> None:
        if self._lease is not None:
            self._lease.client = client
            self._lease.revoke()
            self._lease = None

    async def _any(self, what: Callable[[Any], T]) -> T:
        """Of whichever endpoint answers first; for what may be asked of several at once."""
        loop = asyncio.get_running_loop()
        left = deque(self._clients)
        asked: set[asyncio.Future[T]] = set()
        trouble = LeaseStoreError("unreachable", "no endpoint", self._place.text)
        while left or asked:
            if left:
                one = loop.run_in_executor(None, self._one, left.popleft(), what)
                one.add_done_callback(_heard)
                asked.add(one)
            done, asked = await asyncio.wait(
                asked,
                timeout=NEXT_ENDPOINT_AFTER_S if left else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for each in done:
                try:
                    return each.result()
                except LeaseStoreError as error:
                    trouble = error
                    if error.kind != "unreachable":
                        raise
        raise trouble

    def _answered(self, what: Callable[[Any], T]) -> T:
        """Of the first endpoint that can be reached."""
        trouble = LeaseStoreError("unreachable", "no endpoint", self._place.text)
        for client in tuple(self._clients):
            try:
                return self._one(client, what)
            except LeaseStoreError as error:
                trouble = error
                if error.kind != "unreachable":
                    raise
        raise trouble

    def _one(self, client: Any, what: Callable[[Any], T]) -> T:
        """Of this endpoint, which is asked first from then on. Raises LeaseStoreError alone."""
        try:
            answer = self._as_user(client, what)
        except LeaseStoreError:
            raise
        except Exception as error:  # the library lets those of requests and json through, too
            client.session.headers.pop(TOKEN_HEADER, None)
            raise self._trouble(client, error) from None
        self._clients = [client, *(c for c in self._clients if c is not client)]
        return answer

    def _as_user(self, client: Any, what: Callable[[Any], T]) -> T:
        """With a token of etcd's, where there is a user. One that etcd does not know any more (it was started
        again, some time has gone, users were changed) says nothing against the user: a new one is got."""
        if not self._user[0]:
            return what(client)
        if TOKEN_HEADER in client.session.headers:
            try:
                return what(client)
            except Exception as error:
                if not any(words in _words(error) for words in STALE_TOKEN_ERRORS):
                    raise
        self._log_in(client)
        return what(client)

    def _log_in(self, client: Any) -> None:
        name, password = self._user
        client.session.headers.pop(TOKEN_HEADER, None)
        told = client.post(
            client.get_url("/auth/authenticate"), json={"name": name, "password": password}
        )
        client.session.headers[TOKEN_HEADER] = told["token"]

    def _trouble(self, client: Any, error: Exception) -> LeaseStoreError:
        kind, why = explain_error(error)
        where = f"{client.host}:{client.port}"
        if kind == "unreachable" and "remote end closed" in why:
            why += "; it may want a certificate of ours" if self._place.secure else TLS_HINT
        return LeaseStoreError(kind, f"{where}: {why}", self._place.text)


def _heard(asked: asyncio.Future[T]) -> None:
    """Its trouble is no news where another one has answered."""
    if not asked.cancelled():
        asked.exception()


def explain_error(error: Exception) -> tuple[str, str]:
    """What an exception of the client library means: kind and words."""
    detail = str(getattr(error, "detail_text", "") or "")
    try:
        said = json.loads(detail)["error"]
        detail = str(said["message"] if isinstance(said, dict) else said)
    except (ValueError, TypeError, KeyError):
        pass
    low = _words(error)
    # etcd's own words; etcd/api/v3rpc/rpctypes/error.go
    if "authentication failed" in low or "invalid auth token" in low:
        return "auth", "it does not know this user or password (ETCDCTL_USER)"
    if "user name is empty" in low:
        return "auth", "it wants a user: set ETCDCTL_USER=name:password"
    if "permission denied" in low:
        return (
            "auth",
            f"this user may not write keys under /{KEY_ROOT}: etcdctl role grant-permission",
        )
    if "authentication is not enabled" in low:
        return "auth", "it knows no users; unset ETCDCTL_USER"
    if "database space exceeded" in low:
        return "full", "its database is full, it takes no new keys (alarm NOSPACE)"
    if "http request to an https server" in low:
        return "tls", "it speaks TLS, and etcd:// does not: write etcds://"
    if "certificate" in low or "ssl" in low:
        return "tls", f"TLS does not come about: {_root(detail or str(error))}"
    name = type(error).__name__
    if name in ("ConnectionFailedError", "ConnectionTimeoutError"):
        return "unreachable", _root(detail) or name
    if "etcdserver: " in low:
        return "unreachable", detail[:200]
    if name in ("ApiVersionDiscoveryFailedError", "JSONDecodeError", "Etcd3Exception", "KeyError"):
        first = " ".join((detail or str(error) or name).split())[:80]
        return "no-etcd", f"what answers there is no etcd: {ascii(first)[1:-1]}"
    return "unreachable", detail[:200] or _root(str(error)) or name


def _words(error: Exception) -> str:
    return f"{getattr(error, 'detail_text', '') or ''} {error}".lower()


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
        return f"no answer in {ENDPOINT_TIMEOUT_S:g} s"
    return text.rpartition(": ")[2].strip("()'\" ")[:200]
