"""The number that PyTorch itself gives to the first step of this process.

Adam and its like count their steps in the state that a checkpoint keeps: an optimizer that was loaded
counts on, a new one begins at 1. So the first count tells from where this process goes on. Optimizers
without such a count (plain SGD) tell nothing, nor do several that take turns.

Tried on torch 2.13 with `ZeroRedundancyOptimizer`, `GradScaler`, `LBFGS`, schedulers, and optimizers of the
user's own that hold another one.
"""

from __future__ import annotations

import sys
import weakref

from ... import member
from ...member import TRAINING, here
from .parameter_hash import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

FIRST_STEP = "first step"
TURNS = 3
"""Steps of another optimizer by which it leads."""
GONE = -1
"""No object's id: one led, and is no more."""
DEEP = 24
"""Frames between the step of an optimizer and that of one that it holds, at the most."""


class Steps:
    """Called after each step of an optimizer. A step of the training is one of the optimizer that leads: of
    several that take turns (a GAN's) the first; another one once it has made TURNS steps without it.

    Where a program has made no other optimizer, none can stand around the one that steps: it is told in
    `__call__` alone. Each further function would cost more between a step's cold caches than what it does."""

    def __init__(self) -> None:
        self._one = 0
        self._alone = 0
        self._made = 0
        self._leader: Callable[[], object] | None = None
        self._others: dict[int, int] = {}
        self._values = Values()
        self._every = self._values.every

    def add_optimizer(self) -> None:
        """The program has made an optimizer; one that holds another is one of two at least."""
        self._made += 1
        self._alone = 0

    def __call__(
        self, optimizer: Any, args: object, kwargs: object, frame: FrameType | None = None
    ) -> None:
        """``frame`` is PyTorch's own, which calls what is hooked after each step; else that of our caller."""
        if id(optimizer) != self._alone and not self._counts(optimizer, frame or sys._getframe(1)):
            return
        box = here.box
        if box is not None and box.phase_code == TRAINING and not here.is_pausing:
            box.step()
        else:
            member.step()
        if self._every and box is not None:
            try:
                self._values.stepped(box, optimizer)
            except Exception:
                self._every = 0

    def _counts(self, optimizer: Any, frame: FrameType) -> bool:
        """Return True if this is a step of the training."""
        if _inner(frame):
            return False  # the optimizer around it tells of the step
        if id(optimizer) != self._one:
            if not self._leads(optimizer):
                return False
        elif self._others:
            self._others = {}
        if self._made == 1 and self._leader is not None:
            self._alone = id(optimizer)
        return True

    def _leads(self, optimizer: Any) -> bool:
        """Return True if the steps of this optimizer count from now on."""
        try:
            if not self._one:
                self._first(optimizer)
            else:
                self.add_optimizer()  # or copied it, which is not seen
                if here.notes.pop(FIRST_STEP, None) is not None:
                    here.identify()
                turns = self._others[id(optimizer)] = self._others.get(id(optimizer), 0) + 1
                if turns < TURNS and self._leader is not None and self._leader() is not None:
                    return False
            self._one, self._others = id(optimizer), {}
            self._leader = weakref.ref(optimizer, self._gone)
        except Exception:
            self._leader = None
        return True

    def _gone(self, leader: object) -> None:
        """Another optimizer may have its address next."""
        if leader is self._leader:
            self._one, self._alone = GONE, 0

    def _first(self, optimizer: Any) -> None:
        torch = sys.modules.get("torch")
        if torch is not None:
            here.note("threads", "%d" % torch.get_num_threads())
        number = _count(optimizer)
        if number is not None:
            here.note(FIRST_STEP, "%d" % number)


def _inner(frame: FrameType) -> bool:
    """Return True if another optimizer's step is running around this one, as that of a wrapper is
    (`ZeroRedundancyOptimizer`): PyTorch's frame around a step stands further out once more."""
    code, outer = frame.f_code, frame.f_back
    for _ in range(DEEP):
        if outer is None:
            return False
        if outer.f_code is code:
            return True
        outer = outer.f_back
    return False


def _count(optimizer: Any) -> int | None:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state.get(parameter)
            if state and "step" in state:
                return int(state["step"])
    return None
