"""Calls of jitted functions over devices of several processes, in order, as the collectives of other
frameworks are counted: all of these processes must make the same calls.

A call is one of them if an array that it returned, or that it was given while it compiled, is on devices of
other processes. What a function did in its first calls holds for later ones: to ask each array would cost
more than the step's other hooks. A function that did both is not counted.
"""

from __future__ import annotations

import sys
from time import monotonic

from ... import member
from ...collective_calls import Calls, rank_ranges
from . import arrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType
    from typing import Any, Protocol

    from ...blackbox import Box
    from ...collective_calls import Group

    class Function(Protocol):
        name: str
        processes: tuple[int, ...] | None


GROUP_NAME = "jitted"
"""Name of the group of these calls; of some of the processes, with their numbers behind it."""
MAX_JUDGED_CALLS = 4
"""Calls of a function whose arrays are asked where they are."""


class GlobalCalls:
    """The calls of this process that other processes must make, too."""

    def __init__(self) -> None:
        self._box: Box | None = None
        self._calls: Calls | None = None
        self._groups: dict[tuple[int, ...], Group | None] = {}

    def judge_arguments(self, jitted: Function, leaves: Iterable[Any]) -> None:
        """Note which processes take part in a call with these arguments. Those of one process alone prove
        nothing: the result may still be of several."""
        if jitted.processes is None:
            jitted.processes = _processes(leaves) or None

    def judge_result(self, jitted: Function, leaves: Iterable[Any]) -> None:
        """Note which processes took part in a call that returned these arrays."""
        processes = _processes(leaves)
        if jitted.processes is None:
            jitted.processes = processes
        elif jitted.processes != processes:
            jitted.processes = ()

    def note(self, box: Box, jitted: Function, frame: FrameType) -> None:
        """Count one call, made at the innermost line of the program from ``frame`` outwards."""
        processes = jitted.processes
        if not processes:
            return
        if box is not self._box:  # the first call, or one of a forked child
            self._box, self._calls, self._groups = box, Calls(box), {}
        calls = self._calls
        assert calls is not None
        if processes not in self._groups:
            self._groups[processes] = self._new_group(calls, processes)
        group = self._groups[processes]
        if group is None:
            return
        if not calls.is_own_code.get(id(frame.f_code)):
            frame = calls.caller(frame)
        key = (jitted.name, id(frame.f_code), frame.f_lasti)
        numbers = calls.known_signatures.get(key)
        if numbers is None:
            shown = (jitted.name, "", "", (), -1)
            numbers = calls.signature(key, shown, (), frame)
        group.call(*numbers, monotonic())

    def _new_group(self, calls: Calls, processes: tuple[int, ...]) -> Group | None:
        distributed: Any = sys.modules.get("jax._src.distributed")
        state = getattr(distributed, "global_state", None)
        process_id, size = getattr(state, "process_id", None), getattr(state, "num_processes", 0)
        other: Any = sys.modules.get("torch.distributed")
        # The record has room for the groups of one framework.
        if process_id not in processes or (other is not None and other.is_initialized()):
            return None
        is_whole = len(processes) == size
        name = GROUP_NAME if is_whole else "%s %s" % (GROUP_NAME, rank_ranges(processes))
        return calls.group(name, member.here.round, processes, processes.index(process_id))


def _processes(leaves: Iterable[Any]) -> tuple[int, ...]:
    """Return the processes whose devices hold the first of these arrays that is not here alone; () if there
    is none."""
    for leaf in leaves:
        if arrays.is_array(leaf) and not getattr(leaf, "is_fully_addressable", True):
            return tuple(sorted({d.process_index for d in leaf.sharding.device_set}))
    return ()
