"""The state of NCCL's communicators, as its own service (RAS) reports it while a job runs."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from allaboard.facts.finding import Place, Who


class NcclAnswer(StrEnum):
    """Whether a process answers NCCL's service."""

    PRESENT = "present"
    """It answers."""
    SILENT = "silent"
    """It did not answer this time."""
    DEAD = "dead"
    """It has not answered for a minute: NCCL has given it up."""


class NcclRank(msgspec.Struct, frozen=True, kw_only=True):
    """One process of a communicator."""

    rank: int = -1
    """Its rank in the communicator; -1 if not told."""
    host: str = ""
    """Its address; "" if not told."""
    pid: int = 0
    """Its pid; 0 if not told."""
    gpu: str = ""
    """Its GPU, as NCCL numbers it; "" if not told."""
    answer: NcclAnswer = NcclAnswer.PRESENT
    """Whether it answers."""
    error: str = ""
    """NCCL's own error on it; "" for none."""


class OperationCount(msgspec.Struct, frozen=True, kw_only=True):
    """The ranks of a communicator that have launched one operation equally often."""

    count: int
    """How often."""
    size: int
    """How many ranks they are."""
    ranks: tuple[NcclRank, ...] = ()
    """The ranks, if the report lists them."""


class NcclCommunicator(msgspec.Struct, frozen=True, kw_only=True):
    """One communicator of NCCL."""

    key: str
    """Its hash, by which two reports tell of the same one."""
    size: int = 0
    """Its number of ranks; 0 if not told."""
    ranks: tuple[NcclRank, ...] = ()
    """Ranks that the report lists because they do not answer or have an error."""
    counts: dict[str, tuple[OperationCount, ...]] = {}
    """Operations that not all ranks have launched equally often; "" stands for all operations together."""


class NcclReport(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of NCCL's service."""

    communicators: tuple[NcclCommunicator, ...] = ()
    """The communicators of which something is told."""
    processes: tuple[NcclRank, ...] = ()
    """Processes that do not answer, told without a communicator."""
    place: Place
    """Where it was read."""


class NcclStates(msgspec.Struct, frozen=True, kw_only=True):
    """All answers of NCCL's service, in the order in which they were read."""

    reports: tuple[NcclReport, ...]
    """The answers."""
    members: tuple[Who, ...] = ()
    """Members of the job whose pid is known."""
