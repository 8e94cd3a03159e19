"""Beds in tests: when there can be none, and what a client on a host meets."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from testbed import Bed, missing

HERE = Path(__file__).parent / "testbed_tests"
PORTS = (7000, 7001)


def need(*parts: str) -> None:
    """Skips where a bed, or these further parts, cannot be had; what apt would bring is no excuse
    for CI, a machine without root is."""
    if why := missing(*parts):
        pytest.skip(excuse(why))


def excuse(why: str) -> str:
    """The reason of such a skip."""
    return why if "apt-get" in why else f"not on this machine: {why}"


class Lab:
    """A bed with the answers of real sockets in it."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed

    def dial(
        self,
        host: str = "h1",
        to: str = "h0",
        port: int = PORTS[0],
        size: int = 10,
        wait: float = 1.0,
    ) -> str:
        """What a client there met; see dial.py."""
        words = (
            sys.executable,
            "-I",
            "-S",
            str(HERE / "dial.py"),
            to,
            str(port),
            str(size),
            str(wait),
        )
        return self.bed.run(host, *words).strip()
