"""Steps without a call in a group, from what is seen once in a while."""

from __future__ import annotations

from allaboard.coordinator.trackers.idle_groups import MIN_IDLE_STEPS, IdleGroups
from allaboard.facts import GroupState, Unused


def state(number: int, name: str = "1") -> GroupState:
    return GroupState(name, 1, number, 90.0, 2, (0, 1))


def seen(*looks: tuple[int, int]) -> IdleGroups:
    """Of one group: (step, number of its last call) at each look."""
    strides = IdleGroups()
    for step, number in looks:
        strides.add_group_states(step, [state(number)])
    return strides


def test_a_group_that_is_called_in_every_step_is_not_unused() -> None:
    assert seen(*((s, s) for s in range(1, 400, 40))).unused_groups == ()


def test_steps_after_the_last_call_are_counted_from_where_it_was_seen() -> None:
    looks = [(s, s) for s in (10, 30, 50)]
    assert seen(*looks, (50 + MIN_IDLE_STEPS - 1, 50)).unused_groups == ()
    assert seen(*looks, (250, 50)).unused_groups == (Unused("1", 1, 200, 10),)


def test_what_it_did_before_its_first_call_is_its_rhythm_too() -> None:
    """One that is called at the end of every pass of 900 steps, many times at once."""
    (found,) = seen((900, 2), (905, 40), (1300, 40)).unused_groups
    assert (found.steps, found.most) == (395, 900)


def test_the_longest_way_from_call_to_call_is_kept() -> None:
    looks = ((1, 1), (100, 1), (200, 1), (201, 2), (240, 3), (300, 3))
    (found,) = seen(*looks).unused_groups
    assert (found.steps, found.most) == (60, 199)


def test_a_group_of_which_no_second_call_was_seen_has_no_rhythm() -> None:
    """Called twenty times before the first step, and then at the end of each pass of 500."""
    assert seen((1, 20), (250, 20), (400, 20)).unused_groups == ()


def test_steps_that_are_counted_anew_begin_anew() -> None:
    assert seen((10, 10), (500, 10), (3, 1)).unused_groups == ()


def test_each_group_for_itself() -> None:
    strides = IdleGroups()
    for step in range(1, 200, 10):
        strides.add_group_states(step, [state(step), state(min(step, 11), "2")])
    assert [u.key for u in strides.unused_groups] == [("2", 1)]
