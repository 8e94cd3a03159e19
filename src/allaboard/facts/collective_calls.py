"""Calls of collectives in groups of ranks: what each rank asked for, and how two ranks compare."""

from __future__ import annotations

import msgspec

from allaboard.facts.stack import Frame

NEW_GROUP = "new_group"
"""Counted as a call of the default group, since all of its ranks must make it. Unless
TORCH_DIST_INIT_BARRIER is 1 nobody waits in it for the others. Its ``dtype`` is the list of ranks."""


GroupKey = tuple[str, int]
"""Name of a group, and the round of init that made it."""


class Signature(msgspec.Struct, frozen=True):
    """One call of a collective as a rank made it."""

    op: str
    """The operation."""
    required: int
    """Hash of what all ranks of the group must share."""
    elements: int = 1
    """How many elements went in."""
    root: int = -1
    """Rank that it is from or to; -1 if the operation has none or it may differ."""
    reduce: str = ""
    """How values are reduced; "" if the operation does not reduce or it may differ."""
    dtype: str = ""
    """Type of the elements."""
    shape: str = ""
    """Shape of the tensor."""
    site: Frame | None = None
    """The user's line that called it; None if not known."""

    def __str__(self) -> str:
        if self.op == NEW_GROUP:
            return f"{self.op}({self.dtype})" if self.dtype else self.op
        parts = [f"{self.dtype}[{self.shape}]"] if self.dtype else []
        parts += [self.reduce] if self.reduce else []
        parts += [f"root {self.root}"] if self.root >= 0 else []
        return f"{self.op}({', '.join(parts)})" if parts else self.op


class GroupState(msgspec.Struct, frozen=True):
    """Progress of a member in one group."""

    name: str
    """The group's name."""
    round: int
    """The round of init in which the group was made."""
    number: int
    """Number of its last call there."""
    since: float
    """When that call began (s)."""
    size: int
    """How many ranks the group has."""
    ranks: tuple[int, ...] = ()
    """The ranks; () if they are too many to be listed."""
    marks: tuple[tuple[int, int], ...] = ()
    """(number, digest) of some of its last calls, the newest first."""
    paths: tuple[tuple[int, int], ...] = ()
    """The same of the places of the calls."""
    unordered: int = 0
    """Number of the first call whose order proves nothing; 0 for none."""
    last_call: Signature | None = None
    """The last call; None if it is not known."""

    @property
    def key(self) -> tuple[str, int]:
        """Identity of the group: equal for all its members, and for no other group of the job."""
        return self.name, self.round


class Unused(msgspec.Struct, frozen=True):
    """A group in which a member has made no call for some of its steps."""

    group: str
    """The group's name."""
    round: int
    """The round of init in which the group was made."""
    steps: int
    """Steps without a call, as far as was seen."""
    most: int
    """Most steps that it made before its first call there, or between two."""

    @property
    def key(self) -> tuple[str, int]:
        """Identity of the group, as `GroupState.key`."""
        return self.group, self.round


class Traced(msgspec.Struct, frozen=True):
    """One member's last calls in one group."""

    group: str
    """The group's name."""
    round: int
    """The round of init in which the group was made."""
    first_number: int
    """Number of the first call in ``calls``."""
    calls: tuple[tuple[int, Signature | None], ...] = ()
    """(digest up to the call, signature) of each call; a signature is None if it is not known any more."""

    @property
    def last_number(self) -> int:
        """Number of the last call in ``calls``."""
        return self.first_number + len(self.calls) - 1

    def call_at(self, number: int) -> tuple[int, Signature | None] | None:
        """Return the call of this number; None if it is not in here."""
        return (
            self.calls[number - self.first_number]
            if self.first_number <= number <= self.last_number
            else None
        )
