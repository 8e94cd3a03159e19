"""Which GPUs TensorFlow sees: it takes all that it sees, so each worker of a host shows it its own share.

CUDA reads CUDA_VISIBLE_DEVICES when it is first used, which no framework does while it is imported.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SHARE, VISIBLE = "ALLABOARD_DEVICES", "CUDA_VISIBLE_DEVICES"
CHOOSE = ("torch", "jax")
"""Frameworks that choose a device of all by themselves."""
_narrowed: list[int] = []
"""The process in which it was narrowed; a child of it has what that left."""


def narrow() -> None:
    """Leaves this worker's share, unless the program, or who started this process, has chosen for itself, or
    another framework trains."""
    share, before = _told(os.environ)
    if share is None or any(name in sys.modules for name in CHOOSE):
        return
    if os.environ.get(VISIBLE) == before:
        _narrowed[:] = [os.getpid()]
        os.environ[VISIBLE] = share


def widen() -> None:
    """Takes that back where another framework is imported after TensorFlow: its devices have the numbers that
    they have where nothing was narrowed."""
    share, before = _told(os.environ)
    here = os.getpid() in _narrowed
    _narrowed.clear()
    if not here or os.environ.get(VISIBLE) != share:
        return
    if before is None:
        os.environ.pop(VISIBLE)
    else:
        os.environ[VISIBLE] = before


def _told(environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    """This worker's share, and what the variable was for all."""
    told = environment.get(SHARE)
    if told is None:
        return None, None
    share, given, before = told.partition("|")
    return share, before if given else None
