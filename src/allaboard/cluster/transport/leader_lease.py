"""The lease of the leader where any host may lead: kept in a shared store, acquired by the first, renewed by
it."""

from __future__ import annotations

from typing import Protocol

import msgspec

from allaboard.errors import AllaboardError


class LeaderRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The value that is stored under the lease: who leads. Its field names are the JSON keys in the store."""

    address: str
    """``host:port`` where its agent listens."""
    session: str
    """Tells this agent from every other one."""
    host: str
    """Name of its host."""
    job: str
    """The launcher's id of the job; "" if there is none."""
    rank: int = -1
    """Rank of its worker; -1 if it is not known."""
    pid: int = 0
    """Pid of its worker."""


class LeaseStoreError(AllaboardError, OSError):
    """The lease store cannot be used.

    ``kind``: "unreachable" may pass, everything else will not by itself. ``place`` is the address of the
    store.
    """

    def __init__(self, kind: str, why: str, place: str) -> None:
        super().__init__(why)
        self.kind = kind
        self.place = place


class LeaseStore(Protocol):
    """A shared store that keeps the lease. All methods but `release_lease` raise LeaseStoreError."""

    async def read_leader(self) -> LeaderRecord | None:
        """Return the record of the holder; None if the lease is free."""
        ...

    async def acquire_lease(self, seat: LeaderRecord) -> bool:
        """Acquire the lease for `LEASE_S` seconds if it is free; return True on success."""
        ...

    async def renew_lease(self) -> bool:
        """Extend the lease to `LEASE_S` seconds from now; return False if it was lost."""
        ...

    def release_lease(self) -> None:
        """Give the lease up soon, without waiting for it."""
        ...


LEASE_S = 5.0
"""Seconds for which the lease is valid after its last renewal."""
