"""The operations that the threads of a black box's owner are inside of."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from allaboard.blackbox.box_bytes import BoxMap
from allaboard.facts import Op
from allaboard.probe import layout


def current_operation(map_: BoxMap, group_name: Callable[[int], str]) -> tuple[Op | None, int]:
    """Return the operation that the main thread, else any thread, is inside of, and how many were
    entered in all. ``group_name`` returns a group's name by its index."""
    operation: Op | None = None
    entered = shared = 0
    for slot in range(layout.SLOTS):
        offset = layout.SLOTS_AT + slot * layout.SLOT_BYTES
        begin, since, _, inside, number, name, end = layout.OP.unpack_from(map_, offset)
        if begin == 0:
            continue
        entered += begin
        # Torn, if the counts differ: the next look finds it whole.
        if not inside or begin != end:
            continue
        group = inside - 1
        operation_name = name.rstrip(b"\0").decode("utf-8", "replace")
        if operation is None:
            shared = group
            operation = Op(
                operation_name,
                begin,
                since,
                group=group_name(group),
                position=number,
                beside=slot != 0,
            )
        elif group and group == shared and not operation.also:
            operation = msgspec.structs.replace(operation, also=operation_name)
    return operation, entered


def seconds_in_operations(map_: BoxMap, now: float) -> float:
    """Return the seconds spent inside operations so far, of the thread that has been in them the
    longest."""
    longest = 0.0
    for slot in range(layout.SLOTS):
        offset = layout.SLOTS_AT + slot * layout.SLOT_BYTES
        begin, since, spent, active = layout.OP.unpack_from(map_, offset)[:4]
        if begin:
            longest = max(longest, spent + (max(0.0, now - since) if active else 0.0))
    return longest
