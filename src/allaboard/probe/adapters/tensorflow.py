"""TensorFlow: MultiWorkerMirroredStrategy's start, and every outermost call of a tf.function.

Of a step between several workers, the time in which the process uses no CPU is one of waiting: for the
others' gradients, and for data that is fetched inside of the function. It is told too short, where threads
beside it work.

Hooked and tried on TensorFlow 2.21. TensorFlow holds the GIL through the whole of its collective
start, so nothing in here may count on running while it lasts.
"""

from __future__ import annotations

import functools
from time import monotonic, process_time

from .. import hooks, member, visible_devices
from ._tensorflow import checkpoints, phases
from ._tensorflow import global_step as numbers
from ._tensorflow import keras_callbacks as keras
from ._tensorflow import parameter_servers as servers
from ._tensorflow.losses import Returned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _strategy(module: Any) -> None:
    # The class that is exported as tf.distribute.MultiWorkerMirroredStrategy.
    cls = module.CollectiveAllReduceStrategy
    cls.__init__ = hooks.joining(cls.__init__, declared)


def declared(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The cluster that the strategy was given, else the one that TF_CONFIG describes."""
    resolver = kwargs.get("cluster_resolver") or (args[1] if len(args) > 1 else None)
    # TensorFlow's own resolver of TF_CONFIG says no more than the variable does.
    is_own_resolver = resolver is not None and type(resolver).__name__ != "TFConfigClusterResolver"
    origin = "cluster_resolver argument" if is_own_resolver else "TF_CONFIG"
    if resolver is None:
        from tensorflow.python.distribute.cluster_resolver.tfconfig_cluster_resolver import (
            TFConfigClusterResolver,
        )

        resolver = TFConfigClusterResolver()
    jobs = resolver.cluster_spec().as_dict()
    job, index = resolver.task_type or "worker", int(resolver.task_id or 0)
    # TensorFlow orders the members chief first; an evaluator takes no part, multi_worker_util.
    order = [(j, i) for j in ("chief", "worker") for i in range(len(jobs.get(j, ())))]
    if (job, index) not in order and order:
        return None
    addresses = [a for j in jobs for a in _list(jobs[j])]
    return {
        "framework": "tensorflow",
        "call": "MultiWorkerMirroredStrategy",
        "rank": order.index((job, index)) if order else 0,
        "world_size": max(1, len(order)),
        "job": job,
        "index": index,
        "cluster": {
            "%s:%d" % (j, i): address for j in jobs for i, address in enumerate(_list(jobs[j]))
        },
        "origin": origin,
        "local": all(a.startswith(("127.", "localhost:", "[::1]:")) for a in addresses),
    }


def _list(tasks: dict[int, str] | list[str]) -> list[str]:
    return list(tasks.values()) if isinstance(tasks, dict) else list(tasks)


def _function(module: Any) -> None:
    call = module.Function.__call__
    labels: dict[str, bytes] = {}
    returned = Returned(module.context)

    @functools.wraps(call)
    def inside(self: Any, *args: Any, **kwargs: Any) -> Any:
        box = member.here.box
        slot = box.slot() if box is not None else None
        if box is None or slot is None:
            return call(self, *args, **kwargs)
        name = getattr(self, "_name", "")
        label = labels.get(name)
        if label is None:
            label = labels[name] = ("tf.function %s" % name).encode()[:60]
        slot.enter(label)
        together = slot.depth == 1 and slot.main and member.here.round > 0
        began_at, worked = (monotonic(), process_time()) if together else (0.0, 0.0)
        try:
            result = call(self, *args, **kwargs)
        finally:
            slot.leave(label)
            if together:  # it computes in there too, in threads of its own
                box.sync += max(0.0, monotonic() - began_at - (process_time() - worked))
        if slot.depth == 0:
            if together and not member.here.is_pausing:
                try:
                    returned.look(box, name, result)
                except Exception:
                    pass  # what it returns is the program's
            member.step()
        return result

    module.Function.__call__ = inside


before_import = visible_devices.narrow_to_share


def _checkpoint(module: Any) -> None:
    """When checkpoints are written and read, and how long that takes."""
    checkpoints.saver(module)
    phases.MODULES[module.__name__](module)


MODULES = {
    "tensorflow.python.distribute.collective_all_reduce_strategy": _strategy,
    "tensorflow.python.eager.polymorphic_function.polymorphic_function": _function,
    **phases.MODULES,
    **keras.MODULES,
    **servers.MODULES,
    **numbers.MODULES,
    "tensorflow.python.checkpoint.checkpoint": _checkpoint,
}
