"""What one look at the stack of a process that trains shows."""

from __future__ import annotations

from allaboard.analysis.collectives.queued_calls import reads_device_value
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import Stack
from allaboard.facts.stack import StackLook
from allaboard.protocol.events import StackSampled

MAX_LOOKS = 24
"""Looks at one process that are kept."""


def look_from_sample(sample: StackSampled) -> StackLook:
    """Return whether the process waits for others or for its device, and where it is."""
    stack = Stack(frames=sample.frames, taken_at=sample.sampled_at)
    return StackLook(
        taken_at=sample.sampled_at,
        frame=stack.user,
        waits=reads_device_value(stack) or classify_stack(stack) is Spot.COLLECTIVE,
    )
