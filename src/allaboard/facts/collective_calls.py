"""What members called in their groups: collectives as they were asked for, and how two ranks compare."""

from __future__ import annotations

import msgspec

from allaboard.facts.stack import Frame

NEW_GROUP = "new_group"
"""Counted as a call of the default group, since all of its ranks must make it. Unless
TORCH_DIST_INIT_BARRIER is 1 nobody waits in it for the others. Its ``dtype`` is the list of ranks."""


class Signature(msgspec.Struct, frozen=True):
    """One call as a rank made it. ``required`` is a hash of what all ranks of the group must share;
    ``root`` is -1 and ``reduce`` "" where the operation has none or they may differ."""

    op: str
    required: int
    elements: int = 1
    root: int = -1
    reduce: str = ""
    dtype: str = ""
    shape: str = ""
    site: Frame | None = None

    def __str__(self) -> str:
        if self.op == NEW_GROUP:
            return f"{self.op}({self.dtype})" if self.dtype else self.op
        words = [f"{self.dtype}[{self.shape}]"] if self.dtype else []
        words += [self.reduce] if self.reduce else []
        words += [f"root {self.root}"] if self.root >= 0 else []
        return f"{self.op}({', '.join(words)})" if words else self.op


class GroupState(msgspec.Struct, frozen=True):
    """How far a member is in one group, the ``number``-th call since ``since`` (s).

    ``ranks`` are the group's, () where they are too many to be told; ``round`` the round of init that
    it was made in; ``marks`` are (number, digest) of some of its last calls, the newest first, ``paths``
    the same of the places of the calls; ``unordered`` the first call whose order proves nothing, 0 for none.
    """

    name: str
    round: int
    number: int
    since: float
    size: int
    ranks: tuple[int, ...] = ()
    marks: tuple[tuple[int, int], ...] = ()
    paths: tuple[tuple[int, int], ...] = ()
    unordered: int = 0
    last: Signature | None = None

    @property
    def key(self) -> tuple[str, int]:
        """The same for all members of one group, and for no other group of the job."""
        return self.name, self.round


class Unused(msgspec.Struct, frozen=True):
    """A group in which a member has made no call for ``steps`` of its steps, as far as was seen; ``most``:
    the most that it made before its first call there, or between two."""

    group: str
    round: int
    steps: int
    most: int

    @property
    def key(self) -> tuple[str, int]:
        """As that of `GroupState`."""
        return self.group, self.round


class Traced(msgspec.Struct, frozen=True):
    """One member's last calls in one group: ``calls`` are (digest up to it, signature) from number
    ``first`` on; a signature is None where it is not known any more."""

    group: str
    round: int
    first: int
    calls: tuple[tuple[int, Signature | None], ...] = ()

    @property
    def last(self) -> int:
        return self.first + len(self.calls) - 1

    def at(self, number: int) -> tuple[int, Signature | None] | None:
        """The call of this number; None where it is not in here."""
        return self.calls[number - self.first] if self.first <= number <= self.last else None
