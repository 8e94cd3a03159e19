"""The number that PyTorch itself gives to the first step of this process.

Adam and its like count their steps in the state that a checkpoint keeps: an optimizer that was loaded
counts on, a new one begins at 1. So the first count tells from where this process goes on. Optimizers
without such a count (plain SGD) tell nothing, nor do several that take turns.
"""

from __future__ import annotations

import sys

from .. import member
from ._torch_values import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FIRST_STEP = "first step"


class Steps:
    """Called after each step of an optimizer."""

    def __init__(self) -> None:
        self._one = 0
        self._several = False
        self._values = Values()
        self._every = self._values.every

    def __call__(self, optimizer: Any, args: object, kwargs: object) -> None:
        if id(optimizer) != self._one:
            self._other(optimizer)
        member.step()
        if self._every and member.here.box is not None:
            try:
                self._values.stepped(member.here.box, optimizer)
            except Exception:
                self._every = 0

    def _other(self, optimizer: Any) -> None:
        try:
            if self._one:
                if not self._several and member.here.notes.pop(FIRST_STEP, None) is not None:
                    member.here.identify()
                self._several = True
                return
            self._one = id(optimizer)
            torch = sys.modules.get("torch")
            if torch is not None:
                member.here.note("threads", "%d" % torch.get_num_threads())
            number = _count(optimizer)
            if number is not None:
                member.here.note(FIRST_STEP, "%d" % number)
        except Exception:
            self._several = True


def _count(optimizer: Any) -> int | None:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state.get(parameter)
            if state and "step" in state:
                return int(state["step"])
    return None
