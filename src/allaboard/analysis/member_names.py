"""Names of one or several members for a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized

from allaboard.facts import JobView, Member
from allaboard.facts.rank_sets import name_ranks


def name_members(members: Iterable[Member]) -> str:
    """Return "worker 0, worker 1"."""
    return ", ".join(m.who.name for m in members)


MAX_FIRST_NAMES = 4
"""Members that a sentence names before it counts the rest."""


def name_first_members(members: Sequence[Member]) -> str:
    """Return the names of the first few members, and how many more there are."""
    more = f" and {len(members) - MAX_FIRST_NAMES} more" if len(members) > MAX_FIRST_NAMES else ""
    return name_members(members[:MAX_FIRST_NAMES]) + more


def name_by_rank(members: Sequence[Member]) -> str:
    """Return "rank 1" or "ranks 0 and 2"; the members' names if the rank of one is not known.

    Tasks of TensorFlow go by their names where these have other numbers than the ranks: behind a chief,
    worker 0 is rank 1.
    """
    if any(m.who.rank < 0 for m in members):
        return name_members(members)
    if any(map(goes_by_task, members)):
        return name_first_members(members)
    return name_ranks([m.who.rank for m in members])


def goes_by_task(member: Member) -> bool:
    """Return True if the member is a task of TensorFlow whose name has another number than its rank."""
    framework = member.declared.framework if member.declared is not None else member.framework
    return framework == "tensorflow" and 0 <= member.who.index != member.who.rank


def conjugate_verb(verb: str, subjects: Sized) -> str:
    """Return the verb for these subjects: "wait" for several, "waits" for one."""
    if len(subjects) > 1:
        return verb
    return f"{verb}es" if verb.endswith("o") else f"{verb}s"


def command_on_host(view: JobView, member: Member, command: str) -> str:
    """Return the command with the host on which to type it, if the job runs on several hosts.

    A pid means little without its host.
    """
    return f"on {member.who.host}: {command}" if view.joined else command
