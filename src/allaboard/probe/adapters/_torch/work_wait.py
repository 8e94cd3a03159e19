"""`Work.wait`: hooked for as long as a program may wait for work of its own.

A call without ``async_op`` waits for its work itself, inside of an operation that is told already: the hook
has nothing to say there, and between a step's cold caches it costs as much as a third of what tells of the
call. So it is taken off where the first steps of the training wait within operations only, until the program
begins work that it has to wait for. Where no steps are seen it stays.

Tried on torch 2.13.
"""

from __future__ import annotations

import functools

from ... import hooks, member
from .point_to_point import awaited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SETTLED_STEPS = 16
"""Steps in which nobody waited but within operations, after which nobody else is thought to wait."""


class Waits:
    """The waits of this process for work of ``cls``, which is `torch.distributed.Work`. ``off``: the hook is
    taken off."""

    def __init__(self, cls: Any) -> None:
        self.off = False
        self._cls = cls
        self._bare = cls.wait
        self._hooked = hooks.waiting("Work.wait", cls.wait, awaited)
        cls.wait = self._trial_wait()

    def _trial_wait(self) -> Callable[..., Any]:
        """Return the wait of the first steps, which finds out whether the program itself waits."""
        bare, hooked, here = self._bare, self._hooked, member.here

        @functools.wraps(bare)
        def wait(*args: Any, **kwargs: Any) -> Any:
            box = here.box
            slot = box.slot() if box is not None else None
            if slot is None:
                return bare(*args, **kwargs)
            if not slot.depth:
                self.hook_again()
                return hooked(*args, **kwargs)
            # Only while it is still this function: somebody else may have hooked it since.
            if box is not None and box.steps >= SETTLED_STEPS and self._cls.wait is wait:
                self._cls.wait = bare
                self.off = True
            return bare(*args, **kwargs)

        return wait

    def hook_again(self) -> None:
        """Hook the wait for good: the program waits itself, or is about to."""
        self.off = False
        if self._cls.wait is not self._hooked:
            self._cls.wait = self._hooked

    def begun(self, result: object) -> None:
        """Note what a call has returned, while the hook is off."""
        if isinstance(result, self._cls):
            self.hook_again()

    def entered(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``call``, which begins what its own end waits for outside of all operations, so that the
        wait is hooked by then; same signature, same result."""

        @functools.wraps(call)
        def inside(*args: Any, **kwargs: Any) -> Any:
            self.hook_again()
            return call(*args, **kwargs)

        return inside
