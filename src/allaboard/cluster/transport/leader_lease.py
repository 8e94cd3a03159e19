"""Which host all meet at, where that is not fixed: one seat, held for a time, taken by whoever is first."""

from __future__ import annotations

from typing import Protocol

import msgspec

from allaboard.errors import AllaboardError


class LeaderRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Who leads: where its agent listens (``address``), what tells this agent from any other
    (``session``), its host, the rank of its worker (-1: not known) and that worker's ``pid``."""

    address: str
    session: str
    host: str
    job: str
    rank: int = -1
    pid: int = 0


class LeaseStoreError(AllaboardError, OSError):
    """The place where the seat is kept cannot be used. ``kind``: "unreachable" may pass, all else will not
    by itself; ``place`` is its address."""

    def __init__(self, kind: str, why: str, place: str) -> None:
        super().__init__(why)
        self.kind = kind
        self.place = place


class LeaseStore(Protocol):
    """Where the seat is kept. All but `leave` raise LeaseStoreError."""

    async def read_leader(self) -> LeaderRecord | None:
        """Who has it; None where nobody does."""
        ...

    async def acquire_lease(self, seat: LeaderRecord) -> bool:
        """Takes it where nobody has it, and has it for `LEASE` from then on."""
        ...

    async def renew_lease(self) -> bool:
        """Has it for `LEASE` from now on; False where it has been lost."""
        ...

    def release_lease(self) -> None:
        """Gives it up, soon; waits for nothing."""
        ...


LEASE_S = 5.0
"""Seconds that a seat is held after its holder was last heard of."""
