"""PyTorch: what its workers find in their environment."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGES = ("torch", "accelerate")
"""Packages with modules that the adapter of this name hooks; the first is the framework itself."""


def ports(size: int) -> int:
    return 1


def environment(index: int, size: int, ports: Sequence[int]) -> dict[str, str]:
    """Return what torch's env:// rendezvous reads, as torchrun sets it for one host."""
    return {
        "RANK": str(index),
        "LOCAL_RANK": str(index),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(ports[0]),
    }
