"""JAX: what its workers find in their environment."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGES = ("jax", "flax", "orbax")
"""Packages with modules that the adapter of this name hooks; the first is the framework itself."""


def ports(size: int) -> int:
    return 1


def environment(index: int, size: int, ports: Sequence[int]) -> dict[str, str]:
    """The coordinator's address, which jax reads itself, and the two numbers, which we fill in."""
    return {
        "JAX_COORDINATOR_ADDRESS": "127.0.0.1:%d" % ports[0],
        "JAX_NUM_PROCESSES": str(size),
        "JAX_PROCESS_ID": str(index),
    }
