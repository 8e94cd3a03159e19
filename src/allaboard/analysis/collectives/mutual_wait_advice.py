"""Advice for members that all wait for each other, by the kind of place where they wait. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.analysis.member_names import name_by_rank
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import Member


def advise_new_group(waiting: Sequence[Member]) -> str:
    """Return what to do if some of them, or all, are creating a process group; "" if none is."""
    creating = [m for m in waiting if classify_stack(m.stack) is Spot.GROUP]
    if not creating:
        return ""
    if len(creating) == len(waiting):
        return (
            "call new_group for the same groups in the same order on all ranks, each with the same ranks: "
            "a rank that counts its groups differently never finds the others; make the list of groups in "
            "an order that is the same everywhere (sorted, not that of a set or of a folder)"
        )
    return (
        f"only {name_by_rank(creating)} {'are' if creating[1:] else 'is'} in new_group: call it on all "
        "ranks, as often and in the same order, also on those that are not in the group; a rank that left "
        "out one before this counts its groups differently, and they never find each other"
    )


def advise_jax_step(waiting: Sequence[Member]) -> str:
    """Return what to do if all of them are in a jitted function of JAX; "" if one is not."""
    if not all(m.framework == "jax" and classify_stack(m.stack) is Spot.STEP for m in waiting):
        return ""
    return (
        "check that every process calls the same jitted functions in the same order, with the same shapes, "
        "and makes its Mesh of the same devices in the same order: jax.devices() is the same everywhere, "
        "jax.local_devices() is not"
    )
