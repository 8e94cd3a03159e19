"""Several members in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized

from allaboard.facts import JobView, Member


def names(members: Iterable[Member]) -> str:
    """``worker 0, worker 1``."""
    return ", ".join(m.who.name for m in members)


FIRST = 4
"""Members that are named of many."""


def first_names(members: Sequence[Member]) -> str:
    """The names of the first few, and how many more there are."""
    more = f" and {len(members) - FIRST} more" if len(members) > FIRST else ""
    return names(members[:FIRST]) + more


def ranked(members: Sequence[Member]) -> str:
    """``rank 1``, ``ranks 0, 2``; by their names where the rank of one is not known."""
    if any(m.who.rank < 0 for m in members):
        return names(members)
    return f"rank{'s' if len(members) > 1 else ''} {', '.join(str(m.who.rank) for m in members)}"


def agrees(verb: str, subjects: Sized) -> str:
    """``wait`` after several names, ``waits`` after one."""
    if len(subjects) > 1:
        return verb
    return f"{verb}es" if verb.endswith("o") else f"{verb}s"


def on_host(view: JobView, member: Member, command: str) -> str:
    """``command`` with the host where it is to be typed: of a job on several, a pid says little without."""
    return f"on {member.who.host}: {command}" if view.joined else command
