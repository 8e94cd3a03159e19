"""Members that are in a second init of PyTorch at the place of an earlier one, where the earlier store may be
open still: the ranks find the earlier addresses in it, each another part of them."""

from __future__ import annotations

from allaboard.facts import Evidence, JobView, Member, Phase

OWN_PORT = (
    "give each init a port of its own (MASTER_PORT plus the number of the trial): after "
    "destroy_process_group the earlier store may be open still (an earlier DistributedDataParallel keeps "
    "it so), and at the same port the ranks find the earlier addresses in it"
)
"""What to do about it."""


def joined_again(member: Member) -> bool:
    """Whether its last init met at the port of an earlier one of the same process."""
    declared = member.declared
    return (
        declared is not None
        and declared.again
        and declared.framework == "torch"
        and declared.place.startswith("tcp://")
    )


def inside(view: JobView) -> tuple[Member, ...]:
    """Those who are in such an init now."""
    return tuple(m for m in view.alive if m.phase is Phase.JOINING and joined_again(m))


def meets_the_earlier(view: JobView, waiting: tuple[Member, ...]) -> bool:
    """Whether that may be why they wait, or have lost each other: all have joined so, and none has made more
    than a first call since, or others have not come out of the same init."""
    if not all(map(joined_again, waiting)):
        return False
    return bool(inside(view)) or all(_calls(m) <= 1 for m in waiting)


def _calls(member: Member) -> int:
    """How many calls it has made since its last init, in the group where it made the most."""
    call_counts = [g.number for g in member.groups if g.round == member.round]
    return max([*call_counts, member.op.position if member.op is not None else 0])


def seen(view: JobView, waiting: tuple[Member, ...]) -> tuple[Evidence, ...]:
    """What shows it, of those who wait."""
    declared = waiting[0].declared
    assert declared is not None
    ranks_inside = ", ".join(str(m.who.rank) for m in inside(view))
    return (
        Evidence(
            f"init number {waiting[0].round} of this process, at {declared.place}", "black box"
        ),
        *(
            (Evidence(f"rank {ranks_inside}: still inside {declared.call}", "black box"),)
            if ranks_inside
            else ()
        ),
    )
