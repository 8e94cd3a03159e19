"""What `allaboard diagnose` answers; every face of it renders this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from allaboard.facts.finding import Finding
from allaboard.facts.stack import Frame


class Branch(msgspec.Struct, frozen=True):
    """Calls that the same ranks are in, outermost first, and what they part into below.
    ``ranks`` are ranges, first and last; ``others`` processes of which no rank is known."""

    ranks: tuple[tuple[int, int], ...]
    calls: tuple[Frame, ...]
    below: tuple[Branch, ...]
    others: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return sum(b - a + 1 for a, b in self.ranks) + len(self.others)


def walk_branches(branches: Iterable[Branch]) -> Iterator[tuple[int, Branch]]:
    """Yield every branch with its depth, parents first."""
    stack = [(0, b) for b in reversed(tuple(branches))]
    while stack:
        depth, branch = stack.pop()
        yield depth, branch
        stack += [(depth + 1, b) for b in reversed(branch.below)]


class Crowd(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks (``0-2,5``) that are at one place, and ``others``: processes of which no rank is known (``pid
    4242``). What they do there, the user's own line, whether they are the odd ones out, and the calls,
    innermost first; ``why`` there are none."""

    ranks: str
    count: int
    doing: str
    at: str = ""
    inside: str = ""
    odd: bool = False
    calls: tuple[str, ...] = ()
    why: str = ""
    others: tuple[str, ...] = ()


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """``read``: what was looked at; ``told``: the course of things, a line each; ``crowds`` and
    ``tree``: where everybody is; ``beside``: the processes that were seen and are no ranks, with what they
    are; ``missing``: what is not there and what it could have told;
    ``notes``: what could not be read; ``conclusion``: the last word where there is no finding."""

    schema: int = 1
    allaboard: str = ""
    read: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    crowds: tuple[Crowd, ...] = ()
    tree: tuple[Branch, ...] = ()
    findings: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    conclusion: str = ""
    beside: tuple[str, ...] = ()
