"""What PyTorch 1.13 has as later versions do, under other names.

Tried on 1.13. Its `Optimizer` calls an empty method after each step, and its backward is one function, where
later ones have hooks and an engine's entry; what is known of groups are variables of the module.
"""

from __future__ import annotations

import functools
import sys

from . import ddp_backward as gradients
from .step_number import Steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .collectives import Recorder

AFTER_STEP = "_optimizer_step_code"


class Groups:
    """Stands for ``distributed_c10d``, in as much as the recorder asks for."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._world = self

    def get_rank(self) -> int:
        rank: int = self._module.get_rank()
        return rank

    @property
    def default_pg(self) -> Any:
        return self._module.GroupMember.WORLD

    @property
    def pg_group_ranks(self) -> Any:
        return self._module._pg_group_ranks

    @property
    def pg_map(self) -> Any:
        return self._module._pg_map

    @property
    def pg_names(self) -> Any:
        return self._module._pg_names


def is_known_version(module: Any) -> bool:
    """Return True if these are the variables of this version."""
    return hasattr(module, "_pg_group_ranks") and hasattr(module, "_pg_names")


def backward(recorder: Recorder, call: Any) -> Any:
    """``torch.autograd.backward``, seen as the engine's entry of later versions is."""

    def entry(roots: Any, *args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    engine = gradients.backward(recorder, entry)

    @functools.wraps(call)
    def inside(*args: Any, **kwargs: Any) -> Any:
        roots = args[0] if args else kwargs.get("tensors")
        return engine(roots if isinstance(roots, (tuple, list)) else (roots,), *args, **kwargs)

    return inside


def steps(optimizer: Any, count: Steps) -> None:
    """Counts the steps of all optimizers of this class and those below it."""

    def stepped(self: Any) -> None:
        count(self, (), {}, sys._getframe(1))

    setattr(optimizer, AFTER_STEP, stepped)
