"""Where everybody is, as the faces show it: one entry a place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from allaboard.facts import Crowd, Frame, Member, Who
from allaboard.stacks.groups import Group, Groups
from allaboard.stacks.outliers import outliers
from allaboard.stacks.ranks import told
from allaboard.stacks.unnamed import others, ranks_of


def groups_of(members: Iterable[Member]) -> Groups:
    """The last stacks of these members by rank; by worker number where the rank is not known."""
    groups = Groups()
    for member in members:
        if not member.launcher:
            number = member.who.rank if member.who.rank >= 0 else member.worker
            groups.add(number, member.stack.frames if member.stack is not None else ())
    return groups


def crowds(groups: Iterable[Group], unnamed: Mapping[int, Who] | None = None) -> tuple[Crowd, ...]:
    """Every place, that of most ranks first; ``unnamed`` as for `Dumps`."""
    known = list(groups)
    odd = outliers(known).odd
    return tuple(_crowd(g, g in odd, unnamed or {}) for g in known)


def _crowd(group: Group, odd: bool, unnamed: Mapping[int, Who]) -> Crowd:
    leaf, user = group.frames[0] if group.frames else None, group.user
    return Crowd(
        ranks=told(ranks_of(group.ranks), len(group.ranks)),
        count=len(group.ranks),
        doing=str(group.spot),
        at=str(user or ""),
        inside=leaf.function if leaf is not None and leaf is not user else "",
        odd=odd,
        calls=tuple(_call(f) for f in group.frames),
        why=group.why,
        others=others(group.ranks, unnamed),
    )


def _call(frame: Frame) -> str:
    return f"{frame.file}:{frame.line} in {frame.function}"
