"""Stragglers where waiting cannot be measured: who ends each step late, confirmed by looks at the stacks.

That a rank ends its steps later than others does not show yet that these wait for it: a program may run ahead
of its GPU, which is busy anyhow. So the stacks of the late rank and of one that is ahead are looked at some
times. If the one that is ahead often stands at a line that needs a result of its device, and the late one
hardly ever does, the late one holds it up.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgspec

from allaboard.analysis.performance.stragglers import MIN_LAG_S, MIN_LAG_SHARE
from allaboard.facts import Frame, JobView, Member
from allaboard.facts.memo import cached_per_view
from allaboard.facts.stack import StackLook
from allaboard.facts.time_shares import StepLag

MIN_STEADINESS = 0.5
"""Share of the gap to the others that must be there in three quarters of the samples: ranks that take turns
in being late hold each other up."""
MIN_LOOKS = 12
"""Looks at each of two ranks before they are compared: of a rank that waits for a quarter of its time, one
series of twelve in thirty shows no wait."""
MIN_WAITING_SHARE = 0.25
"""Share of the looks in which the rank that is ahead must wait."""
MAX_OWN_WAITING_SHARE = 1 / 3
"""How often the late rank may wait, as a share of how often the other does."""
MIN_PLACE_SHARE = 0.25
"""Share of the looks by which a rank must be at a place more often than the other one, for it to be named."""


class LateRanks(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks that end each step later than the others of their host."""

    slow: tuple[Member, ...]
    """The late ones, the latest first."""
    ahead: tuple[Member, ...]
    """The others, the first of them first."""
    seconds: float
    """Time by which the slow ones end a step later (s)."""
    step: float
    """Mean duration of a step (s)."""


@cached_per_view
def find_late_ranks(view: JobView) -> tuple[LateRanks, ...]:
    """Return the late ranks of each host on which a minority is late; () for a job that stalls or ends."""
    if view.stalled or view.ending:
        return ()
    by_world: dict[tuple[str, str], list[Member]] = {}
    for member in view.alive:
        if member.step_lag is not None and member.declared is not None:
            by_world.setdefault((member.who.host, member.declared.place), []).append(member)
    return tuple(late for group in by_world.values() if (late := _find_in_group(group)) is not None)


def _find_in_group(members: list[Member]) -> LateRanks | None:
    lagging = sorted(((_lag(m), m) for m in members), key=lambda pair: pair[0].behind)
    if len(lagging) < 2:
        return None
    gaps = [b.behind - a.behind for (a, _), (b, _) in pairwise(lagging)]
    widest = max(range(len(gaps)), key=gaps.__getitem__)
    ahead, slow = lagging[: widest + 1], lagging[widest + 1 :]
    step = lagging[0][0].step
    is_steady = min(lag.least for lag, _ in slow) - ahead[-1][0].behind >= (
        MIN_STEADINESS * gaps[widest]
    )
    if gaps[widest] < max(MIN_LAG_S, MIN_LAG_SHARE * step) or len(slow) > len(ahead):
        return None
    if not is_steady:
        return None
    return LateRanks(
        slow=tuple(m for _, m in reversed(slow)),
        ahead=tuple(m for _, m in ahead),
        seconds=gaps[widest],
        step=step,
    )


def _lag(member: Member) -> StepLag:
    assert member.step_lag is not None
    return member.step_lag


def is_held_up(ahead: Member, late: Member) -> bool:
    """Return True if looks at both show that the one that is ahead waits, and the late one hardly does."""
    looks, late_looks = valid_looks(ahead), valid_looks(late)
    if min(len(looks), len(late_looks)) < MIN_LOOKS:
        return False
    share, late_share = waiting_share(looks), waiting_share(late_looks)
    return share >= MIN_WAITING_SHARE and late_share <= MAX_OWN_WAITING_SHARE * share


def valid_looks(member: Member) -> tuple[StackLook, ...]:
    """Return the looks at a member since one of its world has been late."""
    lag = member.step_lag
    return () if lag is None else tuple(x for x in member.looks if x.taken_at >= lag.since)


def waiting_share(looks: tuple[StackLook, ...]) -> float:
    """Return the share of the looks in which the member waited. There must be one look at least."""
    return sum(look.waits for look in looks) / len(looks)


def distinctive_place(
    looks: tuple[StackLook, ...], other_looks: tuple[StackLook, ...]
) -> tuple[Frame, int] | None:
    """Return the place at which these looks show a member more often than the others show another one, and
    how many of them do; None if there is no such place. There must be a look at each of the two."""
    counts = Counter(_line(look) for look in looks if look.frame is not None)
    other_counts = Counter(_line(look) for look in other_looks)
    shares = {
        line: count / len(looks) - other_counts[line] / len(other_looks)
        for line, count in counts.items()
    }
    if not shares:
        return None
    line = max(shares, key=shares.__getitem__)
    frame = next(x.frame for x in looks if x.frame is not None and _line(x) == line)
    return (frame, counts[line]) if shares[line] >= MIN_PLACE_SHARE else None


def _line(look: StackLook) -> tuple[str, int]:
    return (look.frame.file, look.frame.line) if look.frame is not None else ("", 0)
