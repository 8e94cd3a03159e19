"""Whether a rank ended because a worker process of its DataLoader was gone."""

from __future__ import annotations

import re

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import Member, Raised, Stack

_WORKER_ENDED = re.compile(
    r"DataLoader worker \(pid\(?s?\)? ([\d, ]+)\) (is killed by signal: [^.]+|exited unexpectedly)"
)
"""torch/utils/data/dataloader.py and torch/csrc/DataLoader.cpp."""
_WORKER_GONE_ERRORS = ("ConnectionResetError", "ConnectionRefusedError", "BrokenPipeError", "EOFError",
         "FileNotFoundError")  # fmt: skip
"""What multiprocessing raises where the other end is not there any more."""


def describe_loader_worker_end(member: Member) -> str:
    """What became of it, in words ("worker process 4711 is killed by signal: Killed"); "" where it is no
    such end."""
    raised = member.raised
    if raised is None:
        return ""
    match = _WORKER_ENDED.search(raised.message)
    if match is not None:
        return f"worker process {match[1].strip()} {match[2].strip()}"
    if (
        raised.type in _WORKER_GONE_ERRORS
        and is_raised_in_loader(raised)
        and _is_raised_by_multiprocessing(raised)
    ):
        return f"its worker process does not answer any more ({raised.type})"
    return ""


def is_raised_in_loader(raised: Raised) -> bool:
    """Whether it was raised while the rank waited for its data."""
    return classify_stack(Stack(frames=raised.frames, taken_at=raised.at)) is Spot.DATA


def _is_raised_by_multiprocessing(raised: Raised) -> bool:
    """Whether it was raised by multiprocessing's own way to the worker, not by a dataset in this process."""
    return any("/multiprocessing/" in f.file for f in raised.frames[:12])
