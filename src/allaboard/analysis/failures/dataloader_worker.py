"""Whether a rank ended because a worker process of its DataLoader was gone."""

from __future__ import annotations

import re

from allaboard.analysis.stacks.stack_classifier import Spot, spot
from allaboard.facts import Member, Raised, Stack

_SAID = re.compile(
    r"DataLoader worker \(pid\(?s?\)? ([\d, ]+)\) (is killed by signal: [^.]+|exited unexpectedly)"
)
"""torch/utils/data/dataloader.py and torch/csrc/DataLoader.cpp."""
_GONE = ("ConnectionResetError", "ConnectionRefusedError", "BrokenPipeError", "EOFError",
         "FileNotFoundError")  # fmt: skip
"""What multiprocessing raises where the other end is not there any more."""


def loader_worker(member: Member) -> str:
    """What became of it, in words ("worker process 4711 is killed by signal: Killed"); "" where it is no
    such end."""
    raised = member.raised
    if raised is None:
        return ""
    said = _SAID.search(raised.message)
    if said is not None:
        return f"worker process {said[1].strip()} {said[2].strip()}"
    if raised.type in _GONE and within_loader(raised) and _asks(raised):
        return f"its worker process does not answer any more ({raised.type})"
    return ""


def within_loader(raised: Raised) -> bool:
    """Whether it was raised while the rank waited for its data."""
    return spot(Stack(frames=raised.frames, taken_at=raised.at)) is Spot.DATA


def _asks(raised: Raised) -> bool:
    """Whether it was raised by multiprocessing's own way to the worker, not by a dataset in this process."""
    return any("/multiprocessing/" in f.file for f in raised.frames[:12])
