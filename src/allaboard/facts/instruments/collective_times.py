"""How long each rank spent in each collective, as NCCL's Inspector records it."""

from __future__ import annotations

import msgspec

from allaboard.facts.finding import Place, Who


class TimedCollective(msgspec.Struct, frozen=True, gc=False):
    """One collective on one rank."""

    operation: str
    """Its operation."""
    number: int
    """Its number among those of this operation in the communicator, the same on all ranks."""
    duration_us: float
    """Time from its start on the GPU to its end, waiting for peers included, in microseconds."""


class RankTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The collectives of one rank in one communicator."""

    communicator: str
    """The communicator's hash."""
    rank: int
    """The rank in it."""
    size: int
    """How many ranks it has."""
    host: str = ""
    """The host."""
    pid: int = 0
    """The pid."""
    collectives: tuple[TimedCollective, ...] = ()
    """The last collectives that were recorded, in their order."""
    place: Place
    """Where they stand."""


class CollectiveTimes(msgspec.Struct, frozen=True, kw_only=True):
    """What the Inspector recorded on all ranks."""

    ranks: tuple[RankTimes, ...]
    """One entry for each rank and communicator."""
    members: tuple[Who, ...] = ()
    """Members of the job whose pid is known."""
