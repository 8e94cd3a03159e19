"""Ranks that ended because a worker process of their DataLoader was gone."""

from __future__ import annotations

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import Member, Raised, Stack
from allaboard.late_pattern import compile_late

_WORKER_ENDED = compile_late(
    r"DataLoader worker \(pid\(?s?\)? ([\d, ]+)\) (is killed by signal: [^.]+|exited unexpectedly)"
)
"""Message of torch/utils/data/dataloader.py and torch/csrc/DataLoader.cpp."""
_WORKER_GONE_ERRORS = ("ConnectionResetError", "ConnectionRefusedError", "BrokenPipeError", "EOFError",
         "FileNotFoundError")  # fmt: skip
"""Exceptions that multiprocessing raises if the other process is gone."""


def describe_loader_worker_end(member: Member) -> str:
    """Return what became of the worker process ("worker process 4711 is killed by signal: Killed").

    Return "" if the member did not end because of a worker process.
    """
    raised = member.raised
    if raised is None:
        return ""
    # That it is gone follows from the signal, which the exception before it names.
    matches = list(_WORKER_ENDED.finditer(raised.message))
    match = next((m for m in matches if "signal" in m[2]), next(iter(matches), None))
    if match is not None:
        return f"worker process {match[1].strip()} {match[2].strip()}"
    if (
        raised.type in _WORKER_GONE_ERRORS
        and is_raised_in_loader(raised)
        and _is_raised_by_multiprocessing(raised)
    ):
        return f"its worker process no longer responds ({raised.type})"
    return ""


def is_raised_in_loader(raised: Raised) -> bool:
    """Return True if the exception was raised while the rank waited for its data."""
    return classify_stack(Stack(frames=raised.frames, taken_at=raised.raised_at)) is Spot.DATA


def _is_raised_by_multiprocessing(raised: Raised) -> bool:
    """Return True if multiprocessing's connection to the worker raised it, not a dataset in this process."""
    return any("/multiprocessing/" in f.file for f in raised.frames[:12])
