"""Time of TensorFlow's main thread that is no training: waits for data and for other workers, and
checkpoints.

Tried on TensorFlow 2.21. Only calls from Python can be hooked: a dataset that is iterated inside a
tf.function, as Keras' `fit` does, counts as part of that function's step.
"""

from __future__ import annotations

import functools

from ... import hooks, member
from ...layout import CHECKPOINT
from . import replica_batches as replicas
from .dataset_passes import hook_passes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _hook_iterator(module: Any) -> None:
    """Hook the last call in Python before tf.data's own code: an agreement of a distributed iterator
    with other workers does not count as a wait for data."""
    cls = module.OwnedIterator
    for name in ("_next_internal", "get_next_as_optional"):
        _replace(module, cls, name, hooks.fetching)
    hook_passes(module)


def _hook_distributed_input(module: Any) -> None:
    _hook_batch_agreement(module)
    replicas.hook_iterator(module)


def _hook_batch_agreement(module: Any) -> None:
    """Hook the agreement of workers, before each batch of a finite dataset, on whether anybody has
    one."""
    call = getattr(module, "_calculate_replicas_with_values", None)
    if call is not None:
        module._calculate_replicas_with_values = hooks.waiting("agreeing on a batch", call)


def _hook_collectives(module: Any) -> None:
    """Hook what a strategy reduces and gathers outside of a tf.function, as `fit` does with the
    results of its steps.

    TensorFlow calls them in threads, for which the caller waits at a lock.
    """
    cls = module.CollectiveAllReduce
    _replace(module, cls, "_all_reduce_per_replica_values", _waiting("strategy.reduce"))
    _replace(module, cls, "_gather_implementation", _waiting("strategy.gather"))


def _waiting(name: str) -> Any:
    return functools.partial(hooks.waiting, name)


def _hook_checkpoint(module: Any) -> None:
    for cls in (module.Checkpoint, getattr(module, "CheckpointV1", None)):
        for name in ("save", "write", "restore", "read"):
            if hasattr(cls, name):
                _replace(module, cls, name, _saving if name in ("save", "write") else _reading)


def _hook_manager(module: Any) -> None:
    """Hook the checkpoint manager, which deletes old checkpoints too."""
    _replace(module, module.CheckpointManager, "save", _saving)


def _hook_saver(module: Any) -> None:
    _replace(module, module.Saver, "save", _saving)
    _replace(module, module.Saver, "restore", _reading)


def _reading(call: Any) -> Any:
    return hooks.aside(CHECKPOINT, call, 0)


def _saving(call: Any) -> Any:
    return hooks.aside(CHECKPOINT, call)


def _replace(module: Any, cls: Any, name: str, wrap: Any) -> None:
    """Wrap a method of the class; note it as lacking in this version of TensorFlow otherwise."""
    call = cls.__dict__.get(name)
    if call is None:
        member.here.lacks(module.__name__, "%s.%s" % (cls.__name__, name))
    else:
        setattr(cls, name, wrap(call))


MODULES = {
    "tensorflow.python.distribute.input_lib": _hook_distributed_input,
    "tensorflow.python.distribute.cross_device_ops": _hook_collectives,
    "tensorflow.python.data.ops.iterator_ops": _hook_iterator,
    "tensorflow.python.checkpoint.checkpoint": _hook_checkpoint,
    "tensorflow.python.checkpoint.checkpoint_management": _hook_manager,
    "tensorflow.python.training.saver": _hook_saver,
}
