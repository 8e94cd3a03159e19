"""TensorFlow: MultiWorkerMirroredStrategy's start, and every outermost call of a tf.function.

In a step with other workers, time in which the process uses no CPU counts as waiting: for the
others' gradients, and for data that is fetched inside the function. Threads that work beside it make
it appear shorter.

Tried on TensorFlow 2.21. TensorFlow holds the GIL during the whole of its collective start: no code
in here may count on running meanwhile.
"""

from __future__ import annotations

import functools
from time import monotonic, process_time

from .. import hooks, member, visible_devices
from ..signal_errors import reraise_from_handler
from ._tensorflow import checkpoints, global_step, keras_callbacks, parameter_servers, phases
from ._tensorflow.cluster_declaration import is_on_one_host
from ._tensorflow.losses import Returned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _hook_strategy(module: Any) -> None:
    # The class that is exported as tf.distribute.MultiWorkerMirroredStrategy.
    cls = module.CollectiveAllReduceStrategy
    cls.__init__ = hooks.joining(cls.__init__, read_declaration)


def read_declaration(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Return the declaration in the resolver that the strategy was given, else in TF_CONFIG; None
    for a task that takes no part, as an evaluator."""
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
    # TensorFlow orders the members chief first (multi_worker_util).
    members = [(j, i) for j in ("chief", "worker") for i in range(len(jobs.get(j, ())))]
    if (job, index) not in members and members:
        return None
    addresses = [a for j in jobs for a in _addresses(jobs[j])]
    return {
        "framework": "tensorflow",
        "call": "MultiWorkerMirroredStrategy",
        "rank": members.index((job, index)) if members else 0,
        "world_size": max(1, len(members)),
        "job": job,
        "index": index,
        "cluster": {
            "%s:%d" % (j, i): address for j in jobs for i, address in enumerate(_addresses(jobs[j]))
        },
        "origin": origin,
        "local": is_on_one_host(addresses),
    }


def _addresses(tasks: dict[int, str] | list[str]) -> list[str]:
    return list(tasks.values()) if isinstance(tasks, dict) else list(tasks)


def _hook_function(module: Any) -> None:
    call = module.Function.__call__
    labels: dict[str, bytes] = {}
    returned = Returned(module.context)

    @functools.wraps(call)
    def call_function(self: Any, *args: Any, **kwargs: Any) -> Any:
        box = member.here.box
        slot = box.slot() if box is not None else None
        if box is None or slot is None:
            return call(self, *args, **kwargs)
        name = getattr(self, "_name", "")
        label = labels.get(name)
        if label is None:
            label = labels[name] = ("tf.function %s" % name).encode()[:60]
        has_peers = slot.depth == 0 and slot.main and member.here.round > 0
        began_at, worked = (monotonic(), process_time()) if has_peers else (0.0, 0.0)
        try:
            slot.enter(label)
            result = call(self, *args, **kwargs)
        finally:
            slot.leave(label)
            if has_peers:  # it computes in there too, in threads of its own
                box.sync += max(0.0, monotonic() - began_at - (process_time() - worked))
        if slot.depth == 0:
            if has_peers and not member.here.is_pausing:
                try:
                    returned.add_result(box, name, result)
                except Exception as error:
                    reraise_from_handler(error)  # else what it returns is the program's
            member.step()
        return result

    module.Function.__call__ = call_function


before_import = visible_devices.narrow_to_share


def _hook_checkpoint(module: Any) -> None:
    """Count checkpoints, and the time that they take."""
    checkpoints.hook_saver(module)
    phases.MODULES[module.__name__](module)


MODULES = {
    "tensorflow.python.distribute.collective_all_reduce_strategy": _hook_strategy,
    "tensorflow.python.eager.polymorphic_function.polymorphic_function": _hook_function,
    **phases.MODULES,
    **keras_callbacks.MODULES,
    **parameter_servers.MODULES,
    **global_step.MODULES,
    "tensorflow.python.checkpoint.checkpoint": _hook_checkpoint,
}
