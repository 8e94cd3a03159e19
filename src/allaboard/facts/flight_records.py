"""What a recorder of collectives kept, PyTorch's Flight Recorder above all."""

from __future__ import annotations

import msgspec

from allaboard.facts.stack import Frame


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """One collective in a recorder's ring: the ``number``-th of its ``group`` on this rank, entered
    in the order of ``order``. ``sizes`` are those of the inputs."""

    rank: int
    group: str
    number: int
    op: str
    order: int = 0
    sizes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """The collectives of all ranks whose recorder was found; ``members`` are each group's ranks where
    a dump tells them."""

    entries: tuple[Recorded, ...]
    ranks: tuple[int, ...]
    members: dict[str, tuple[int, ...]] = {}
