"""How many steps a process makes without a call in one of its process groups, as far as samples show."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.facts import GroupState, Unused
from allaboard.facts.collective_calls import GroupKey

MIN_IDLE_STEPS = 20
"""Steps without a call from which a group is reported."""


class IdleGroups:
    """Remembers per group its last call and the longest run of steps without one."""

    __slots__ = ("_called_again", "_runs")

    def __init__(self) -> None:
        self._runs: dict[GroupKey, tuple[int, int, int, int]] = {}
        """Number of the group's last call, the step at which it was first sampled, the last step sampled, and
        the most steps without a call: before the first call, or from one call to the last sample before the
        next."""
        self._called_again: set[GroupKey] = set()
        """Groups with a further call: a group that was only called before the training has no rhythm."""

    def add_group_states(self, step: int, groups: Iterable[GroupState]) -> None:
        """Take in one sample. If the steps are counted anew, so are the runs."""
        for group in groups:
            number, called_at_step, last_step, longest = self._runs.get(
                group.key, (group.number, step, step, step)
            )
            if step < last_step:
                number, called_at_step, longest = group.number, step, step
            elif group.number != number:
                # The call may have been made at any time since the last sample, and counts as made now.
                longest = max(longest, last_step - called_at_step)
                number, called_at_step = group.number, step
                self._called_again.add(group.key)
            self._runs[group.key] = number, called_at_step, step, longest

    @property
    def unused_groups(self) -> tuple[Unused, ...]:
        """The groups in which the process has made no call for many steps, and did so before."""
        return tuple(
            Unused(name, round_, last_step - called_at_step, longest)
            for (name, round_), (_, called_at_step, last_step, longest) in self._runs.items()
            if last_step - called_at_step >= MIN_IDLE_STEPS and (name, round_) in self._called_again
        )
