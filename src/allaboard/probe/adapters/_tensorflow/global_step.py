"""TensorFlow 1's global step, as the hooks of a MonitoredSession fetch it in each run anyway: nothing more
is run for it. A session without any of these hooks tells nothing. Tried on `tf.compat.v1` of TensorFlow
2.21.
"""

from __future__ import annotations

import functools

from ... import member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

HOOKS = ("StopAtStepHook", "CheckpointSaverHook", "StepCounterHook")
"""Those that fetch the global step alone (`before_run` of each)."""


def _hooks(module: Any) -> None:
    for name in HOOKS:
        cls = getattr(module, name)
        cls.after_run = _told(cls.after_run)


def _told(call: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(call)
    def after_run(self: Any, run_context: Any, run_values: Any) -> None:
        box = member.here.box
        if box is not None:
            try:
                box.number(int(run_values.results))
            except Exception as error:
                member.here.notes.setdefault("global step", repr(error))
        call(self, run_context, run_values)

    return after_run


MODULES = {"tensorflow.python.training.basic_session_run_hooks": _hooks}
