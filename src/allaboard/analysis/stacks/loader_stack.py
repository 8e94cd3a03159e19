"""Where a process that loads data is in the user's own code, by its stack. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from allaboard.facts import Frame

_CHILD_ENTRY = "multiprocessing/process.py"
"""The file from which on the frames of a child are its parent's, if it was forked."""


def own_frame_of_loader(frames: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame of the user's own code that runs in the child; None if it waits for work.

    ``frames``: its stack, innermost first. Below the entry of a forked child are the frames in which its
    parent was at the fork.
    """
    if not any(frame.file.endswith(_CHILD_ENTRY) for frame in frames):
        return None
    own_frames = takewhile(lambda frame: not frame.file.endswith(_CHILD_ENTRY), frames)
    return next((frame for frame in own_frames if frame.is_user), None)
