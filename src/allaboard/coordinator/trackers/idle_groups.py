"""How many steps a process makes without a call in a group of its: by what is seen of it once in a while."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.facts import GroupState, Unused

TOLD = 20
"""Steps without a call from which it is kept in mind of a group."""


class IdleGroups:
    """Per group: the number of its last call, the step at which that was seen first, the last step seen, and
    the most steps that were made without a call of it: before the first one, or from one to the last look
    before the next."""

    __slots__ = ("_again", "_seen")

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], tuple[int, int, int, int]] = {}
        self._again: set[tuple[str, int]] = set()
        """Groups of which a further call was seen: what was called before the training has no rhythm."""

    def add_group_states(self, step: int, groups: Iterable[GroupState]) -> None:
        """Takes in one look. A step that is counted anew begins anew."""
        for one in groups:
            number, first, last, most = self._seen.get(one.key, (one.number, step, step, step))
            if step < last:
                number, first, most = one.number, step, step
            elif one.number != number:
                # The call may have been made at any time since the last look, and counts as made now.
                number, most, first = one.number, max(most, last - first), step
                self._again.add(one.key)
            self._seen[one.key] = number, first, step, most

    @property
    def unused_groups(self) -> tuple[Unused, ...]:
        """The groups in which it has made no call for many steps, and did so before."""
        return tuple(
            Unused(name, round_, last - first, most)
            for (name, round_), (_, first, last, most) in self._seen.items()
            if last - first >= TOLD and (name, round_) in self._again
        )
