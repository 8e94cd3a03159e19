"""Where a JAX program waits: for results, for the other processes, for its checkpoints. Tried on jax 0.10.

Between processes the time in which the whole process uses no CPU counts as one of waiting for others, on
CPUs alone: what a device computes meanwhile is not seen from here.
"""

from __future__ import annotations

import functools
from time import monotonic, process_time

from ... import hooks, member
from ...layout import CHECKPOINT
from . import arrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

COLLECTIVE_NAMES = (
    "sync_global_devices",
    "process_allgather",
    "broadcast_one_to_all",
    "assert_equal",
)


def array(module: Any) -> None:
    """Hook `jax._src.array`: results that Python asks for."""
    cls = module.ArrayImpl
    value = cls.__dict__.get("_value")
    if isinstance(value, property) and value.fget is not None:
        cls._value = property(_timed_wait("jax.Array value", value.fget))
    else:
        member.here.lacks("jax._src.array", "ArrayImpl._value")
    ready = getattr(cls, "block_until_ready", None)
    if ready is not None:
        cls.block_until_ready = _timed_wait("block_until_ready", ready)


def api(module: Any) -> None:
    """Hook `jax._src.api`."""
    call = getattr(module, "block_until_ready", None)
    if call is not None:
        module.block_until_ready = _timed_wait("block_until_ready", call)


def hosts(module: Any) -> None:
    """Hook `jax.experimental.multihost_utils`."""
    for name in COLLECTIVE_NAMES:
        call = getattr(module, name, None)
        if call is not None:
            setattr(module, name, hooks.waiting(name, call))


def _timed_wait(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that notes for how long this call waits for results."""
    label = name.encode()

    def inside(*args: Any, **kwargs: Any) -> Any:
        box = member.here.box
        slot = box.slot() if box is not None else None
        if box is None or slot is None or slot.depth or not slot.main:
            return call(*args, **kwargs)
        array = args[0] if args else kwargs.get("x")
        if not arrays.is_array(array):
            array = None  # a tree of the program's own: its classes are asked for nothing
        # It has been fetched already: nothing is waited for.
        if getattr(array, "_npy_value", None) is not None:
            return call(*args, **kwargs)
        has_peers = member.here.round > 0
        began_at, worked = monotonic(), process_time() if has_peers else 0.0
        try:
            slot.enter(label, 0, 0, began_at)
            return call(*args, **kwargs)
        finally:
            slot.leave(label)
            if has_peers and _on_cpu(array):
                box.sync += max(0.0, monotonic() - began_at - (process_time() - worked))

    try:
        functools.update_wrapper(inside, call)
    except TypeError:  # a method in C++ has no name in Python
        inside.__doc__ = getattr(call, "__doc__", None)
    return inside


_platforms: dict[int, tuple[object, bool]] = {}


def _on_cpu(array: Any) -> bool:
    """Return True if all of an array lies on CPUs. Asked once for each layout of arrays; False for a tree of
    several, whatever the program's own classes call ``sharding``."""
    sharding = getattr(array, "sharding", None)
    devices = getattr(sharding, "addressable_devices", None)
    if devices is None:
        return False
    cached = _platforms.get(id(sharding))
    if cached is None:
        cpu = all(getattr(d, "platform", "") == "cpu" for d in devices)
        if len(_platforms) > 256:
            _platforms.clear()
        cached = _platforms[id(sharding)] = sharding, cpu
    return cached[1]


def _checkpoint_hook(owner: str, *names: str) -> Callable[[Any], None]:
    """Return a hook for methods of a class of the module, or for its functions if ``owner`` is ""."""

    def hook(module: Any) -> None:
        target = getattr(module, owner) if owner else module
        for name in names:
            call = vars(target).get(name)
            if call is not None:
                setattr(target, name, hooks.aside(CHECKPOINT, call, 0 if "restore" in name else 1))

    return hook


MODULES = {
    "jax._src.array": array,
    "jax.experimental.multihost_utils": hosts,
    "flax.training.checkpoints": _checkpoint_hook(
        "", "save_checkpoint", "save_checkpoint_multiprocess", "restore_checkpoint"
    ),
    "orbax.checkpoint._src.checkpointers.checkpointer": _checkpoint_hook(
        "Checkpointer", "save", "restore"
    ),
    "orbax.checkpoint._src.checkpointers.async_checkpointer": _checkpoint_hook(
        "AsyncCheckpointer", "save"
    ),
    "orbax.checkpoint.checkpoint_manager": _checkpoint_hook("CheckpointManager", "save", "restore"),
}
