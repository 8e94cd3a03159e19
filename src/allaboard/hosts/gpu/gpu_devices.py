"""The GPUs that this host shows, found without any framework."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path


def count_visible_gpus(
    environment: Mapping[str, str], root: Path = Path("/proc/driver/nvidia/gpus")
) -> int:
    """Return how many GPUs a worker started here would see: by CUDA_VISIBLE_DEVICES, else by the
    driver's list."""
    listed = environment.get("CUDA_VISIBLE_DEVICES")
    if listed is not None:
        return len(_visible(listed))
    try:
        return len(list(root.iterdir()))
    except OSError:  # no such driver, or not to be seen from here
        return 0


def _visible(listed: str) -> list[str]:
    """CUDA sees the devices before the first entry that names none."""
    names = (name.strip() for name in listed.split(","))
    return list(takewhile(lambda name: name not in ("", "-1"), names))


def gpu_share_of_worker(
    environment: Mapping[str, str],
    local_rank: int,
    workers: int,
    root: Path = Path("/proc/driver/nvidia/gpus"),
) -> str | None:
    """Return the devices of one worker among ``workers`` of this host, as CUDA_VISIBLE_DEVICES
    takes them; None without a GPU, or for one worker alone."""
    count = count_visible_gpus(environment, root)
    if count == 0 or workers < 2:
        return None
    listed = environment.get("CUDA_VISIBLE_DEVICES")
    names = _visible(listed) if listed is not None else [str(i) for i in range(count)]
    each = max(1, count // workers)
    own_devices = [names[(local_rank * each + i) % count] for i in range(each)]
    return ",".join(own_devices)
