"""Decides where tasks of a cluster or hosts of a batch job meet while the first one has not started. Pure.

All know all addresses. The lowest task that is up stands in for the first one; the others follow it, so
that they say together who is missing. A task that cannot reach the first one, while another one can, does not
stand in: then the network is at fault, and not the first task.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple


class TaskAnswer(StrEnum):
    """What is met at a task's address."""

    LEADS = "leads"
    """An agent that admits others."""
    WAITS = "waits"
    """An agent that neither leads nor has found the first task."""
    FOLLOWS_FIRST = "follows-first"
    """An agent that the first task's has admitted: that one is up."""
    ABSENT = "absent"
    """Nobody: refused, silent, no route, or no such name."""
    OTHER = "other"
    """Another program, perhaps the framework itself."""


class DeputyStep(NamedTuple):
    """What a task is to do."""

    leads: bool = False
    """True if it stands in for the first task."""
    follows: int = 0
    """Number of the task that it follows, in the order of ranks; 0 is the first one."""
    waits: bool = False
    """True if it stays as it is, since a lower task is about to lead."""


FIRST = DeputyStep()
"""Look for the first task, as if nothing were wrong."""


def choose_deputy(own: int, answers: Sequence[TaskAnswer], may_lead: bool = True) -> DeputyStep:
    """Return what task number ``own`` is to do by the answers at the addresses of all tasks.

    The answer at its own address is looked at only if it may not lead, since another process of its host
    listens there.
    """
    others = [a for i, a in enumerate(answers) if i != own or not may_lead]
    if answers[0] is not TaskAnswer.ABSENT or TaskAnswer.FOLLOWS_FIRST in others:
        return FIRST
    lower = answers[1:own]
    if TaskAnswer.LEADS in lower:
        return DeputyStep(follows=1 + lower.index(TaskAnswer.LEADS))
    if any(answer is TaskAnswer.WAITS for answer in lower):
        return DeputyStep(waits=True)
    if not may_lead:
        is_led = answers[own] is TaskAnswer.LEADS
        return DeputyStep(follows=own) if is_led else DeputyStep(waits=True)
    return DeputyStep(leads=True)
