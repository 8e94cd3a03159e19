"""A bed of three hosts with an echo server on each, healed after each test."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pytest

from bedded import HERE, PORTS, Lab, need
from testbed import Bed


@pytest.fixture(scope="module")
def _lab() -> Iterator[Lab]:
    need()
    with Bed(3) as bed:
        for host in bed.hosts:
            words = [sys.executable, "-I", "-S", str(HERE / "serve.py"), *map(str, PORTS)]
            server = bed.start(host, words)
            while "listening" not in server.text():
                assert server.poll() is None, server.text()
                time.sleep(0.01)
        yield Lab(bed)


@pytest.fixture
def lab(_lab: Lab) -> Iterator[Lab]:
    yield _lab
    _lab.bed.heal()
