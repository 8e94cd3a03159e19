"""Makes hooks in C, see ``_events.c``: each of one function of a framework, and of the Python function that
stands in its place without C, and does with it what C leaves to Python."""

from __future__ import annotations

from sys import _getframe

from . import member
from .blackbox import Box, Slot
from .collective_calls import Group
from .data_loops import Pass
from .event_fields import NATIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BATCH, COLLECTIVE, STEP = range(3)
"""Kinds of hooks, as they are numbered in C."""


def hook_in_c(
    kind: int,
    call: Callable[..., Any] | None,
    slow: Callable[..., Any],
    state: object,
    first: object = None,
    second: object = None,
    third: object = None,
) -> Any:
    """Return a hook in C, or None where there is no C. What ``state`` and the others are depends on the
    event."""
    if NATIVE is None:
        return None
    kinds = (Box, Slot, Group, Pass)
    return NATIVE.hook(
        kind,
        member.here,
        kinds,
        _getframe,
        type(_getframe()),
        call,
        slow,
        state,
        first,
        second,
        third,
    )
