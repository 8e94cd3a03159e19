"""TensorFlow 1's global step, read from the results that a MonitoredSession's hooks fetch in each run.

Nothing more is run for it; a session without any of these hooks has no known step. Tried on
`tf.compat.v1` of TensorFlow 2.21.
"""

from __future__ import annotations

import functools

from ... import member
from ...signal_errors import reraise_from_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

STEP_HOOKS = ("StopAtStepHook", "CheckpointSaverHook", "StepCounterHook")
"""Hooks that fetch the global step and nothing else (`before_run` of each)."""


def _wrap_hooks(module: Any) -> None:
    for name in STEP_HOOKS:
        cls = getattr(module, name)
        cls.after_run = _noting_step(cls.after_run)


def _noting_step(call: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(call)
    def after_run(self: Any, run_context: Any, run_values: Any) -> None:
        box = member.here.box
        if box is not None:
            try:
                box.number(int(run_values.results))
            except Exception as error:
                reraise_from_handler(error)
                member.here.notes.setdefault("global step", repr(error))
        call(self, run_context, run_values)

    return after_run


MODULES = {"tensorflow.python.training.basic_session_run_hooks": _wrap_hooks}
