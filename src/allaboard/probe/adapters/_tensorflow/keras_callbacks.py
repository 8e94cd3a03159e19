"""Keras: evaluation and saving, of `fit`'s own validation too; and steps where JAX computes.

Tried on tf_keras 2.21 and Keras 3.15 (TensorFlow and JAX). Under TensorFlow a step is the call of a
tf.function, which is hooked there; under JAX it is the call of what `make_train_function` made.
"""

from __future__ import annotations

import functools

from ... import hooks, member
from ...layout import CHECKPOINT, EVALUATION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CHECKPOINT_METHODS = {"save": 1, "save_weights": 1, "load_weights": 0}
"""Methods of a model -> 1 if one writes a checkpoint, 0 if it reads one."""


def _hook_model(module: Any) -> None:
    for name in ("evaluate", "predict"):
        _exclude(module.Model, name, EVALUATION)
    _hook_checkpoints(module)


def _hook_tensorflow_trainer(module: Any) -> None:
    for name in ("evaluate", "predict"):
        _exclude(module.TensorFlowTrainer, name, EVALUATION)


def _hook_jax_trainer(module: Any) -> None:
    cls = module.JAXTrainer
    for name in ("evaluate", "predict"):
        _exclude(cls, name, EVALUATION)
    call = cls.make_train_function

    @functools.wraps(call)
    def make_train_function(self: Any, *args: Any, **kwargs: Any) -> Any:
        function_before = self.train_function
        result = call(self, *args, **kwargs)
        # Keras keeps the function that it has: to wrap it again would count each step twice.
        if self.train_function is not function_before:
            member.here.steps_told = True
            self.train_function = _counting_step(self.train_function)
        return result

    cls.make_train_function = make_train_function


def _counting_step(call: Any) -> Any:
    @functools.wraps(call)
    def train_function(*args: Any, **kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        member.step()
        return result

    return train_function


def _exclude(cls: Any, name: str, kind: int, more: int = 1) -> None:
    """Count the time in this method as no training; see `hooks.aside`."""
    call = cls.__dict__.get(name)
    if call is not None:
        setattr(cls, name, hooks.aside(kind, call, more))


def _hook_checkpoints(module: Any) -> None:
    for name, writes in CHECKPOINT_METHODS.items():
        _exclude(module.Model, name, CHECKPOINT, writes)


MODULES = {
    "tf_keras.src.engine.training": _hook_model,
    "tf_keras.src.engine.training_v1": _hook_model,
    "keras.src.backend.tensorflow.trainer": _hook_tensorflow_trainer,
    "keras.src.backend.jax.trainer": _hook_jax_trainer,
    "keras.src.models.model": _hook_checkpoints,
}
