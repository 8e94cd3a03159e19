"""Memory on an accelerator, as the framework itself counts it.

Only a framework that the program has imported and whose devices it has initialised is asked: nothing here
loads a module, makes a context on a GPU or waits for one. Each question reads counters that the framework
keeps on the host. Written from the frameworks' documents and sources (torch 2.13, jax 0.10, TensorFlow 2.21),
and tried where there is no GPU: torch without CUDA, and the CPU devices of jax and TensorFlow, which keep no
such counters.
"""

from __future__ import annotations

import sys

from .layout import MEMORY, MEMORY_AT
from .signal_errors import reraise_from_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterator
    from typing import Any, Tuple

    Sample = Tuple[int, int, int, int, int, int]
    """Bytes in use by tensors, bytes reserved from the driver, the peak of those in use, the limit, how often
    an allocation had to be tried again, and the number of the device."""

INTERVAL_S = 5.0
"""Seconds between two readings. PyTorch builds a dictionary of some 70 numbers for each."""
UNKNOWN = -1
"""In place of a number that the framework does not tell."""


def record_memory(map_: mmap.mmap) -> None:
    """Write what the process holds on its fullest device into its black box. Never raises."""
    for number, (module, read, _) in enumerate(READERS, 1):
        framework = sys.modules.get(module)
        if framework is None:
            continue
        try:
            samples = list(read(framework))
            if not samples:
                continue
            used, reserved, peak, limit, retries, device = max(samples)
            count = MEMORY.unpack_from(map_, MEMORY_AT)[0] + 1
            MEMORY.pack_into(
                map_, MEMORY_AT, count, used, reserved, peak, limit, retries, number, device, count
            )
        except Exception as error:
            reraise_from_handler(error)
            continue  # another version counts otherwise
        return


def _torch(torch: Any) -> Iterator[Sample]:
    """``torch.cuda.memory_stats`` of the current device, of ROCm too."""
    cuda = torch.cuda
    if not cuda.is_initialized():  # what follows would initialise it
        return
    device = cuda.current_device()
    stats = cuda.memory_stats_as_nested_dict(device)
    used = stats["allocated_bytes"]["all"]
    yield (
        used["current"],
        stats["reserved_bytes"]["all"]["current"],
        used["peak"],
        cuda.get_device_properties(device).total_memory,
        stats.get("num_alloc_retries", UNKNOWN),
        device,
    )


def _jax(bridge: Any) -> Iterator[Sample]:
    """``Device.memory_stats()``; None for a device that keeps none, as CPUs do."""
    # Not `jax.local_devices`, which makes the backends, nor the lock under which they are made.
    for platform, backend in tuple(bridge._backends.items()):
        for device in backend.local_devices() if platform != "cpu" else ():
            stats = device.memory_stats() or {}
            if "bytes_in_use" in stats:
                yield (
                    stats["bytes_in_use"],
                    stats.get("pool_bytes", stats.get("bytes_reserved", UNKNOWN)),
                    stats.get("peak_bytes_in_use", UNKNOWN),
                    stats.get("bytes_limit", UNKNOWN),
                    UNKNOWN,
                    device.local_hardware_id if device.local_hardware_id is not None else 0,
                )


def _tensorflow(context_module: Any) -> Iterator[Sample]:
    """``tf.config.experimental.get_memory_info``; it tells no limit, and has nothing for CPUs."""
    context = context_module._context
    if context is None or not context._initialized:
        return
    for device in context.list_logical_devices("GPU"):
        name = device.name.partition("/device:")[2] or device.name
        info = context.get_memory_info(name)
        index = int(name.rpartition(":")[2])
        yield info["current"], UNKNOWN, info["peak"], UNKNOWN, UNKNOWN, index


READERS = (
    ("torch", _torch, "torch.cuda.memory_stats"),
    ("jax._src.xla_bridge", _jax, "jax.Device.memory_stats"),
    ("tensorflow.python.eager.context", _tensorflow, "tf.config.experimental.get_memory_info"),
)
"""The module that must have been imported, what reads, and its name. A record names its reader by the place
in here, from 1."""
