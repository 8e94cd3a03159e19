"""The answer of `allaboard diagnose`, which every output format renders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from allaboard.facts.finding import Finding
from allaboard.facts.stack import Frame


class Branch(msgspec.Struct, frozen=True):
    """Calls that the same ranks are in, outermost first."""

    ranks: tuple[tuple[int, int], ...]
    """Ranges of the ranks, first and last."""
    calls: tuple[Frame, ...]
    """The calls."""
    below: tuple[Branch, ...]
    """What they part into below these calls."""
    others: tuple[str, ...] = ()
    """Processes of which no rank is known."""
    world: str = ""
    """Name of their world, of an outermost call where several run side by side; else ""."""

    @property
    def count(self) -> int:
        """Number of processes that are in these calls."""
        return sum(b - a + 1 for a, b in self.ranks) + len(self.others)


def walk_branches(branches: Iterable[Branch]) -> Iterator[tuple[int, Branch]]:
    """Yield every branch with its depth, parents first."""
    stack = [(0, b) for b in reversed(tuple(branches))]
    while stack:
        depth, branch = stack.pop()
        yield depth, branch
        stack += [(depth + 1, b) for b in reversed(branch.below)]


class Crowd(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks that are at one place."""

    ranks: str
    """The ranks (``0-2,5``)."""
    count: int
    """How many there are."""
    doing: str
    """What they do there."""
    at: str = ""
    """The place in the user's own code; "" for none."""
    inside: str = ""
    """The operation that they are inside of; "" for none."""
    odd: bool = False
    """True if they are the odd ones out."""
    calls: tuple[str, ...] = ()
    """The calls, innermost first."""
    why: str = ""
    """Why there are no calls."""
    others: tuple[str, ...] = ()
    """Processes of which no rank is known (``pid 4242``)."""
    tasks: tuple[str, ...] = ()
    """Names of the ranks, if they are tasks whose names have other numbers (``chief 0``); () if not."""
    world: str = ""
    """Name of their world where several run side by side; else ""."""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer of `allaboard diagnose`."""

    schema: int = 1
    """Version of this format."""
    allaboard: str = ""
    """Version of allaboard."""
    read: tuple[str, ...] = ()
    """What was looked at."""
    told: tuple[str, ...] = ()
    """The course of events, a line each."""
    crowds: tuple[Crowd, ...] = ()
    """Where everybody is, grouped by place."""
    tree: tuple[Branch, ...] = ()
    """Where everybody is, as one tree of calls."""
    findings: tuple[Finding, ...] = ()
    """What the rules found."""
    missing: tuple[str, ...] = ()
    """What is not there, and what it could have told."""
    notes: tuple[str, ...] = ()
    """What could not be read."""
    conclusion: str = ""
    """The last word if there is no finding."""
    beside: tuple[str, ...] = ()
    """Processes that were seen and are no ranks, with what they are."""
