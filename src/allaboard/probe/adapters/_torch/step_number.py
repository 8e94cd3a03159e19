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
from ...event_fields import StepsFields
from ...event_hooks import STEP, hook_in_c
from ...member import TRAINING, here
from ...signal_errors import reraise_from_handler
from .parameter_hash import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

FIRST_STEP = "first step"
TURNS_TO_LEAD = 3
"""Steps of another optimizer by which it leads."""
NO_LEADER = -1
"""No object's id: the optimizer that led is no more."""
MAX_FRAMES = 24
"""Frames between the step of an optimizer and that of one that it holds, at the most."""


class Steps(StepsFields):
    """Called after each step of an optimizer. A step of the training is one of the optimizer that leads: of
    several that take turns (a GAN's) the first; another one once it has made TURNS_TO_LEAD steps without it.

    Where a program has made no other optimizer, none can stand around the one that steps: it is noted in
    `__call__` alone. Each further function would cost more between a step's cold caches than what it does."""

    def __init__(self) -> None:
        self._leading_id = 0
        """id() of the optimizer that leads; 0 before the first step."""
        self.only_id = 0
        """id() of the leading optimizer if no other one was made: its steps need no more questions."""
        self._optimizers_made = 0
        self._leader: Callable[[], object] | None = None
        self._turns_by_id: dict[int, int] = {}
        """Steps of other optimizers, by id(), since the leading one has stepped."""
        self._values = Values()
        self.every = self._values.every

    @property
    def hook(self) -> Callable[..., None]:
        """What is called after each step."""
        in_c = hook_in_c(STEP, None, self.__call__, self, member.read_memory)
        # The method itself: of the object, it would be looked up each time.
        return in_c.step if in_c is not None else self.__call__

    def add_optimizer(self) -> None:
        """Note that the program has made an optimizer; one that holds another is one of two at least."""
        self._optimizers_made += 1
        self.only_id = 0

    def __call__(
        self, optimizer: Any, args: object, kwargs: object, frame: FrameType | None = None
    ) -> None:
        """Note a step. ``frame`` is PyTorch's own, which calls what is hooked after each step, else that of
        our caller."""
        if id(optimizer) != self.only_id and not self._is_training_step(
            optimizer, frame or sys._getframe(1)
        ):
            return
        box = here.box
        if box is not None and box.phase_code == TRAINING and not here.is_pausing:
            now = box.step()
            if now >= here.memory_due:
                member.read_memory(box, now)
        else:
            member.step()
        if self.every and box is not None:
            try:
                self._values.stepped(box, optimizer)
            except Exception as error:
                reraise_from_handler(error)
                self.every = 0

    def _is_training_step(self, optimizer: Any, frame: FrameType) -> bool:
        """Return True if this is a step of the training."""
        if _is_within_other_step(frame):
            return False  # the optimizer around it tells of the step
        if id(optimizer) != self._leading_id:
            if not self._takes_lead(optimizer):
                return False
        elif self._turns_by_id:
            self._turns_by_id = {}
        if self._optimizers_made == 1 and self._leader is not None:
            self.only_id = id(optimizer)
        return True

    def _takes_lead(self, optimizer: Any) -> bool:
        """Return True if the steps of this optimizer count from now on."""
        try:
            if not self._leading_id:
                self._note_first_step(optimizer)
            else:
                self.add_optimizer()  # or copied it, which is not seen
                if here.notes.pop(FIRST_STEP, None) is not None:
                    here.identify()
                turns = self._turns_by_id[id(optimizer)] = (
                    self._turns_by_id.get(id(optimizer), 0) + 1
                )
                if (
                    turns < TURNS_TO_LEAD
                    and self._leader is not None
                    and self._leader() is not None
                ):
                    return False
            self._leading_id, self._turns_by_id = id(optimizer), {}
            self._leader = weakref.ref(optimizer, self._forget_leader)
        except Exception as error:
            reraise_from_handler(error)
            self._leader = None
        return True

    def _forget_leader(self, leader: object) -> None:
        """Forget the id of an optimizer that is gone: another one may get it."""
        if leader is self._leader:
            self._leading_id, self.only_id = NO_LEADER, 0

    def _note_first_step(self, optimizer: Any) -> None:
        torch = sys.modules.get("torch")
        if torch is not None:
            here.note("threads", "%d" % torch.get_num_threads())
        number = _read_step_count(optimizer)
        if number is not None:
            here.note(FIRST_STEP, "%d" % number)


def _is_within_other_step(frame: FrameType) -> bool:
    """Return True if another optimizer's step is running around this one, as that of a wrapper is
    (`ZeroRedundancyOptimizer`): PyTorch's frame around a step stands further out once more."""
    code, outer = frame.f_code, frame.f_back
    for _ in range(MAX_FRAMES):
        if outer is None:
            return False
        if outer.f_code is code:
            return True
        outer = outer.f_back
    return False


def _read_step_count(optimizer: Any) -> int | None:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state.get(parameter)
            if state and "step" in state:
                return int(state["step"])
    return None
