"""Calls of collectives in groups of ranks: what each rank asked for, and how two ranks compare."""

from __future__ import annotations

import msgspec

from allaboard.facts.bounds import Instant, Whole
from allaboard.facts.stack import Frame

NEW_GROUP = "new_group"
"""Counted as a call of the default group, since all of its ranks must make it. Unless
TORCH_DIST_INIT_BARRIER is 1 nobody waits in it for the others. Its ``dtype`` is the list of ranks."""


GroupKey = tuple[str, int]
"""Name of a group, and the round of init that made it."""

JITTED_GROUP = "jitted"
"""First word of the name under which JAX's jitted calls over several processes are counted."""


def is_jitted(key: GroupKey) -> bool:
    """Return True if the calls of this group are JAX's: calls without communication among them may differ
    between processes by right."""
    return key[0].partition(" ")[0] == JITTED_GROUP


class Signature(msgspec.Struct, frozen=True):
    """One call of a collective as a rank made it."""

    op: str
    """The operation."""
    required: Whole
    """Hash of what all ranks of the group must share."""
    elements: Whole = 1
    """How many elements went in."""
    root: Whole = -1
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
    round: Whole
    """The round of init in which the group was made."""
    number: Whole
    """Number of its last call there."""
    since: Instant
    """When that call began (s)."""
    size: Whole
    """How many ranks the group has."""
    ranks: tuple[Whole, ...] = ()
    """The ranks; () if they are too many to be listed."""
    marks: tuple[tuple[Whole, Whole], ...] = ()
    """(number, digest) of some of its last calls, the newest first."""
    paths: tuple[tuple[Whole, Whole], ...] = ()
    """The same of the places of the calls."""
    unordered: Whole = 0
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
    round: Whole
    """The round of init in which the group was made."""
    first_number: Whole
    """Number of the first call in ``calls``."""
    calls: tuple[tuple[Whole, Signature | None], ...] = ()
    """(digest up to the call, signature) of each call; a signature is None if it is not known any more."""
    tensors: tuple[Whole, ...] = ()
    """For each call the number of the parameter or buffer that it was called with, or whose gradient; 0 for
    none. () if no call has one."""
    tensor_names: dict[Whole, str] = {}
    """Path in the model ("Net.body.2.weight") by that number, as far as known."""

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
