"""Which GPUs TensorFlow sees: it takes all that it sees, so each worker of a host shows it its own share.

CUDA reads CUDA_VISIBLE_DEVICES when it is first used, which no framework does while it is imported.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SHARE_VARIABLE, VISIBLE_VARIABLE = "ALLABOARD_DEVICES", "CUDA_VISIBLE_DEVICES"
CHOOSING_FRAMEWORKS = ("torch", "jax")
"""Frameworks that choose a device of all by themselves."""
_narrowed: list[int] = []
"""The process in which it was narrowed; a child of it has what that left."""


def narrow_to_share() -> None:
    """Leaves this worker's share, unless the program, or who started this process, has chosen for itself, or
    another framework trains."""
    share, visible_before = _share_and_before(os.environ)
    if share is None or any(name in sys.modules for name in CHOOSING_FRAMEWORKS):
        return
    if os.environ.get(VISIBLE_VARIABLE) == visible_before:
        _narrowed[:] = [os.getpid()]
        os.environ[VISIBLE_VARIABLE] = share


def restore_all() -> None:
    """Takes that back where another framework is imported after TensorFlow: its devices have the numbers that
    they have where nothing was narrowed."""
    share, visible_before = _share_and_before(os.environ)
    was_narrowed = os.getpid() in _narrowed
    _narrowed.clear()
    if not was_narrowed or os.environ.get(VISIBLE_VARIABLE) != share:
        return
    if visible_before is None:
        os.environ.pop(VISIBLE_VARIABLE)
    else:
        os.environ[VISIBLE_VARIABLE] = visible_before


def _share_and_before(environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    """This worker's share, and what the variable was for all."""
    share_text = environment.get(SHARE_VARIABLE)
    if share_text is None:
        return None, None
    share, had_value, visible_before = share_text.partition("|")
    return share, visible_before if had_value else None
