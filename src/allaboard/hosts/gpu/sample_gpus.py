"""Reads the GPUs every few seconds, and when one reports an error; prints them as JSON, a line each time.

A process of its own: a driver that hangs holds whoever asks it in the kernel, where no signal arrives. It
ends with the agent that reads its lines. ``python -m allaboard.hosts.gpu.sample_gpus SECONDS``
"""

from __future__ import annotations

import os
import sys

import msgspec

from allaboard.facts import Gpu
from allaboard.hosts.gpu.nvml import GpuReadError, NvmlLibrary


class GpuSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line that this process prints."""

    gpus: tuple[Gpu, ...] = ()
    """All GPUs of the host."""
    problem: str = ""
    """Why they cannot be read; it is the last line then."""


def main(interval_s: float) -> int:
    """Print samples until nobody reads them any more."""
    parent = os.getppid()
    os.nice(10)  # never in the way of the training
    try:
        library = NvmlLibrary()
        while os.getppid() == parent:
            _print(GpuSample(gpus=library.read_gpus()))
            library.wait(interval_s)
    except GpuReadError as error:
        _print(GpuSample(problem=str(error)))
    except Exception as error:  # a library of another version, or a broken one
        _print(GpuSample(problem=f"NVML: {type(error).__name__}: {error}"))
    return 0


def _print(sample: GpuSample) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(sample) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    try:
        sys.exit(main(float(sys.argv[1])))
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(0)  # the agent has ended
