"""Decides which agent leads once the leader is lost. Pure.

All agents know the roster that the leader sent when the roll call was over: the leader first, then the others
in the order of their ranks. The lowest one that has lost the leader and is not cut off leads next. One that
cannot reach the leader while another one still follows it does not: then only its own connection broke.

Of the two sides of a divided network only one may go on: that with most of the agents that can still be
alive; where both have as many, that with the first rank's host. An agent whose host refuses the connection is
known to have ended, and counts for neither side.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple


class AgentAnswer(StrEnum):
    """What is met at an agent's own port."""

    LEADS = "leads"
    """An agent that admits others."""
    FOLLOWS = "follows"
    """An agent that has not lost its leader."""
    WAITS = "waits"
    """An agent that has lost its leader, too, and may lead next."""
    GONE = "gone"
    """No agent: its host refuses the connection."""
    SILENT = "silent"
    """Nothing: the host, or the network between, is down."""
    OTHER = "other"
    """An agent that cannot lead, or a program that has not proved to be an agent of this job."""


class SuccessionStep(NamedTuple):
    """What an agent that has lost its leader is to do."""

    leads: bool = False
    """True if it leads from now on."""
    follows: int = -1
    """Number of the agent in the roster that it is to follow; -1 if it waits."""


WAIT = SuccessionStep()
"""Ask again: another agent is about to lead, or only this one has lost the leader, or it is cut off."""


def choose_successor(
    own_number: int, answers: Sequence[AgentAnswer], ranks: Sequence[int]
) -> SuccessionStep:
    """Return what agent number ``own_number`` is to do by the answers at all ports of the roster.

    Number 0 is the leader that was lost; ``own_number`` is -1 for an agent beyond the end of the roster,
    which only follows. ``ranks`` are those of the agents' first members. The own answer is not looked at.
    """
    other_numbers = [number for number in range(len(answers)) if number != own_number]
    leading = [number for number in other_numbers if answers[number] is AgentAnswer.LEADS]
    if leading:
        return SuccessionStep(follows=leading[0])
    if answers[0] is AgentAnswer.WAITS or AgentAnswer.FOLLOWS in (
        answers[n] for n in other_numbers
    ):
        return WAIT
    if own_number < 0:
        return WAIT
    waiting = [number for number in other_numbers if answers[number] is AgentAnswer.WAITS]
    # Nobody to lead: alone it watches its own workers anyway.
    if not waiting or min(waiting) < own_number or not has_quorum(own_number, answers, ranks):
        return WAIT
    return SuccessionStep(leads=True)


def has_quorum(own_number: int, answers: Sequence[AgentAnswer], ranks: Sequence[int]) -> bool:
    """Return True if agent number ``own_number``, with those that it reaches, may decide for the job."""
    numbers = range(len(answers))
    alive = [n for n in numbers if n == own_number or answers[n] is not AgentAnswer.GONE]
    reached = [n for n in alive if n == own_number or answers[n] is not AgentAnswer.SILENT]
    has_first_rank = min(ranks) in (ranks[n] for n in reached)
    return 2 * len(reached) > len(alive) or (2 * len(reached) == len(alive) and has_first_rank)


def describe_isolation(reached: int, count: int) -> str:
    """Return how few of the agents that may live can be reached, for people."""
    return (
        f"{reached} of {count} agents can be reached from here: nothing is ended on this side until the "
        "others answer again"
    )
