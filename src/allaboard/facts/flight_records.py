"""Records of collectives, those of PyTorch's Flight Recorder above all."""

from __future__ import annotations

import msgspec

from allaboard.facts.bounds import RankNumber, Whole
from allaboard.facts.stack import Frame


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """One collective in a recorder's ring."""

    rank: RankNumber
    """The rank."""
    group: str
    """The process group."""
    number: Whole
    """Number of the call in its group on this rank."""
    op: str
    """The operation."""
    order: Whole = 0
    """Place in the order in which this rank entered its calls."""
    sizes: tuple[tuple[Whole, ...], ...] = ()
    """Sizes of the inputs."""
    dtypes: tuple[str, ...] = ()
    """Types of the inputs."""
    frames: tuple[Frame, ...] = ()
    """The calls that led to it, innermost first."""
    completed: bool = False
    """True if the recorder says that it was over when the dump was written."""

    @property
    def is_queued(self) -> bool:
        """True if NCCL has it on a GPU's queue, where it is not over. The probe marks the groups of NCCL's
        recorder in a living process, whose states can be relied on."""
        return self.is_of_nccl and not self.completed

    @property
    def is_of_nccl(self) -> bool:
        """True if NCCL's recorder in a living process has kept it."""
        return self.group.endswith("(NCCL)")


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """The collectives of all ranks whose recorder was found."""

    entries: tuple[Recorded, ...]
    """The collectives."""
    ranks: tuple[int, ...]
    """The ranks."""
    members: dict[str, tuple[int, ...]] = {}
    """Ranks of each group, if a dump tells them."""
