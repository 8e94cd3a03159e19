"""Keeps the leader's record in etcd: a key that a transaction creates under an etcd lease, which the holder
renews.

`etcd3gw` speaks etcd's JSON gateway; it comes with ``pip install 'allaboard[etcd]'`` and is imported only
here. User and certificates are those of etcdctl: ETCDCTL_USER, ETCDCTL_PASSWORD, ETCDCTL_CACERT,
ETCDCTL_CERT, ETCDCTL_KEY. Without these the certificates are the job's own (--tls-cert). Proxy variables are
ignored: etcd is in the job's own network.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections import deque
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, TypeVar

import msgspec

from allaboard.cluster.transport.etcd_clients import make_clients
from allaboard.cluster.transport.etcd_errors import KEY_ROOT, error_text, explain_error
from allaboard.cluster.transport.etcd_url import EtcdUrl
from allaboard.cluster.transport.leader_lease import LEASE_S, LeaderRecord, LeaseStoreError
from allaboard.cluster.transport.tls import TlsFiles

T = TypeVar("T")
NEXT_ENDPOINT_AFTER_S = 0.5
"""Seconds after which the next endpoint is asked in parallel: several silent endpoints must not cost the
lease."""
TLS_HINT = "; where it speaks TLS, write etcds://"
"""Likely reason why an endpoint closes the connection on a plain request."""
TOKEN_HEADER = "Authorization"
STALE_TOKEN_ERRORS = ("invalid auth token", "revision of auth store is old")
"""Words of etcd about a token that it does not accept any more; etcd/api/v3rpc/rpctypes/error.go."""


class EtcdLeaseStore:
    """The lease store in etcd.

    ``job`` is the launcher's id of this job: other jobs use other keys.
    """

    def __init__(
        self,
        url: EtcdUrl,
        job: str,
        environment: Mapping[str, str] = os.environ,
        tls: TlsFiles | None = None,
    ) -> None:
        self._url = url
        self.key = "/".join(("", *filter(None, (KEY_ROOT, url.prefix, job or "job")), "seat"))
        self._job = job
        self._clients = make_clients(url, environment, tls)
        user, _, password = environment.get("ETCDCTL_USER", "").partition(":")
        self._user = user, password or environment.get("ETCDCTL_PASSWORD", "")
        self._lease: Any = None

    async def read_leader(self) -> LeaderRecord | None:
        return await self._ask_any(self._read_leader)

    async def acquire_lease(self, record: LeaderRecord) -> bool:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            None, self._ask_in_turn, lambda c: self._acquire(c, record)
        )

    async def renew_lease(self) -> bool:
        return await self._ask_any(self._renew)

    def release_lease(self) -> None:
        asyncio.get_running_loop().run_in_executor(None, self._release_quietly)

    def _release_quietly(self) -> None:
        try:
            self._ask_in_turn(self._release)
        except LeaseStoreError:
            pass  # etcd ends the lease by itself

    def _read_leader(self, client: Any) -> LeaderRecord | None:
        values = client.get(self.key)
        if not values:
            return None
        try:
            record = msgspec.json.decode(values[0], type=LeaderRecord)
        except (msgspec.DecodeError, UnicodeDecodeError):
            why = (
                f"its key {self.key} holds something else: {ascii(values[0][:40])[1:]}; "
                f"etcdctl del {self.key}, or another prefix"
            )
            raise LeaseStoreError("garbled", why, self._url.text) from None
        if record.job != self._job:
            why = f"its key {self.key} is of job {record.job or '(no id)'}; give another prefix"
            raise LeaseStoreError("other-job", why, self._url.text)
        return record

    def _acquire(self, client: Any, record: LeaderRecord) -> bool:
        # A new etcd lease per attempt: one that has expired cannot be revived.
        lease = client.lease(math.ceil(LEASE_S))
        value = msgspec.json.encode(record)
        # A transaction that succeeds only if the key does not exist: of several candidates exactly one wins.
        if not client.create(self.key, value, lease):
            holder = self._read_leader(client)
            if holder is None or holder.session != record.session:
                lease.revoke()
                return False
            # The key is ours: the answer to an earlier attempt was lost
            client.put(self.key, value, lease)
        self._lease = lease
        return True

    def _renew(self, client: Any) -> bool:
        if self._lease is None:
            return False
        # Another endpoint may be asked at the same time, in another thread
        lease = copy(self._lease)
        lease.client = client
        return int(lease.refresh()) > 0

    def _release(self, client: Any) -> None:
        if self._lease is not None:
            self._lease.client = client
            self._lease.revoke()
            self._lease = None

    async def _ask_any(self, request: Callable[[Any], T]) -> T:
        """Return the first answer of any endpoint; for requests that may safely reach several endpoints."""
        loop = asyncio.get_running_loop()
        remaining = deque(self._clients)
        pending: set[asyncio.Future[T]] = set()
        last_error = LeaseStoreError("unreachable", "no endpoint", self._url.text)
        while remaining or pending:
            if remaining:
                answer = loop.run_in_executor(
                    None, self._ask_endpoint, remaining.popleft(), request
                )
                answer.add_done_callback(_ignore_result)
                pending.add(answer)
            done, pending = await asyncio.wait(
                pending,
                # Hedged: the next endpoint is asked while the first one may still answer.
                timeout=NEXT_ENDPOINT_AFTER_S if remaining else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for each in done:
                try:
                    return each.result()
                except LeaseStoreError as error:
                    last_error = error
                    if error.kind != "unreachable":
                        raise
        raise last_error

    def _ask_in_turn(self, request: Callable[[Any], T]) -> T:
        """Return the answer of the first endpoint that can be reached; for requests that must happen once."""
        last_error = LeaseStoreError("unreachable", "no endpoint", self._url.text)
        for client in tuple(self._clients):
            try:
                return self._ask_endpoint(client, request)
            except LeaseStoreError as error:
                last_error = error
                if error.kind != "unreachable":
                    raise
        raise last_error

    def _ask_endpoint(self, client: Any, request: Callable[[Any], T]) -> T:
        """Return the answer of this endpoint and ask it first from then on. Raises nothing but
        LeaseStoreError."""
        try:
            answer = self._as_user(client, request)
        except LeaseStoreError:
            raise
        except Exception as error:  # the library passes errors of requests and json on, too
            client.session.headers.pop(TOKEN_HEADER, None)
            raise self._make_error(client, error) from None
        # A new list instead of a change in place: another thread may be iterating over the old one.
        self._clients = [client, *(c for c in self._clients if c is not client)]
        return answer

    def _as_user(self, client: Any, request: Callable[[Any], T]) -> T:
        """Send the request with an authentication token, if there is a user.

        etcd forgets tokens (restart, expiry, changed users); that says nothing against the user, so a new one
        is requested.
        """
        if not self._user[0]:
            return request(client)
        if TOKEN_HEADER in client.session.headers:
            try:
                return request(client)
            except Exception as error:
                if not any(words in error_text(error) for words in STALE_TOKEN_ERRORS):
                    raise
        self._log_in(client)
        return request(client)

    def _log_in(self, client: Any) -> None:
        name, password = self._user
        client.session.headers.pop(TOKEN_HEADER, None)
        response = client.post(
            client.get_url("/auth/authenticate"), json={"name": name, "password": password}
        )
        client.session.headers[TOKEN_HEADER] = response["token"]

    def _make_error(self, client: Any, error: Exception) -> LeaseStoreError:
        kind, why = explain_error(error)
        endpoint = f"{client.host}:{client.port}"
        if kind == "unreachable" and "remote end closed" in why:
            why += "; it may require a client certificate" if self._url.secure else TLS_HINT
        return LeaseStoreError(kind, f"{endpoint}: {why}", self._url.text)


def _ignore_result(answer: asyncio.Future[T]) -> None:
    """Fetch the exception of an answer that nobody needs any more; asyncio would complain about it
    otherwise."""
    if not answer.cancelled():
        answer.exception()
