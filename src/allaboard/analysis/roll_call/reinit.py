"""Members in a second init of PyTorch at the place of an earlier one.

The earlier store may still be open there. Each rank then finds some of the earlier addresses in it.
"""

from __future__ import annotations

from allaboard.facts import Evidence, JobView, Member, Phase
from allaboard.facts.rank_sets import name_ranks

OWN_PORT_ADVICE = (
    "give each init its own port (MASTER_PORT plus the number of the trial): after "
    "destroy_process_group the earlier store may still be open (an earlier DistributedDataParallel keeps "
    "it open), and at the same port the ranks find the earlier addresses in it"
)
"""Advice on how to avoid the earlier store."""


def has_joined_again(member: Member) -> bool:
    """Return True if the member's last init met at the port of an earlier init of the same process."""
    declared = member.declared
    return (
        declared is not None
        and declared.again
        and declared.framework == "torch"
        and declared.place.startswith("tcp://")
    )


def members_inside_reinit(view: JobView) -> tuple[Member, ...]:
    """Return the members that are in such an init now."""
    return tuple(m for m in view.alive if m.phase is Phase.JOINING and has_joined_again(m))


def may_meet_earlier_store(view: JobView, waiting: tuple[Member, ...]) -> bool:
    """Return True if the earlier store may be why these members wait, or have lost each other.

    All of them have joined again, and either none has made more than a first call since, or some members are
    still inside the same init.
    """
    if not all(map(has_joined_again, waiting)):
        return False
    # Members that made several calls since have found each other: the store cannot be the cause.
    return bool(members_inside_reinit(view)) or all(_calls_since_init(m) <= 1 for m in waiting)


def _calls_since_init(member: Member) -> int:
    """Return how many calls the member has made since its last init, in the group with the most calls."""
    call_counts = [g.number for g in member.groups if g.round == member.round]
    return max([*call_counts, member.op.position if member.op is not None else 0])


def reinit_evidence(view: JobView, waiting: tuple[Member, ...]) -> tuple[Evidence, ...]:
    """Return the evidence of such an init, for the members that wait."""
    declared = waiting[0].declared
    assert declared is not None
    inside = [m.who.rank for m in members_inside_reinit(view)]
    return (
        Evidence(
            f"init number {waiting[0].round} of this process, at {declared.place}", "black box"
        ),
        *(
            (Evidence(f"{name_ranks(inside)}: still inside {declared.call}", "black box"),)
            if inside
            else ()
        ),
    )
