"""Where a process that loads data is in the user's own code, by its stack. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import Frame, Stack
from allaboard.late_pattern import compile_late

_CHILD_ENTRY = "multiprocessing/process.py"
"""The file from which on the frames of a child are its parent's, if it was forked."""

_NATIVE_LIBRARY = compile_late(r"/site-packages/(?:torch|numpy|cv2|sklearn|jax|tensorflow)/")
"""Libraries whose native code keeps threads of its own."""


def own_frame_of_loader(frames: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame of the user's own code that runs in the child; None if it waits for work.

    ``frames``: its stack, innermost first. Below the entry of a forked child are the frames in which its
    parent was at the fork.
    """
    if not any(frame.file.endswith(_CHILD_ENTRY) for frame in frames):
        return None
    return frame_of_program(frames)


def frame_of_program(frames: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame of the user's own code that runs in a child of any kind; None for none."""
    own_frames = takewhile(lambda frame: not frame.file.endswith(_CHILD_ENTRY), frames)
    return next((frame for frame in own_frames if frame.is_user), None)


def is_in_native_call(frames: Sequence[Frame]) -> bool:
    """Return True if the process stands in native code that its own line, or a library of numbers, calls.

    False at a lock of Python, whose holder may be another process.
    """
    innermost = frames[0] if frames else None
    if innermost is None or classify_stack(Stack(frames=(innermost,), taken_at=0.0)) is Spot.LOCK:
        return False
    return innermost.is_user or _NATIVE_LIBRARY.search(innermost.file) is not None
