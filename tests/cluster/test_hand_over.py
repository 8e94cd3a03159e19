"""The framework binds the port right after the roll call, every time."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import hand_over
import pytest

LONG = pytest.mark.long  # a minute each


def test_the_next_binder_has_the_port_200_times_in_a_row() -> None:
    asyncio.run(hand_over.hand_over(hand_over.plain, 200))


@pytest.mark.zoo
@pytest.mark.parametrize(
    "binder, times",
    [
        ("torch", 40),
        ("grpc", 40),
        ("tensorflow", 2),
        ("jax", 40),
        pytest.param("torch", 200, marks=LONG),
        pytest.param("grpc", 200, marks=LONG),
        pytest.param("jax", 200, marks=LONG),
        pytest.param("tensorflow", 200, marks=LONG),
    ],
)
def test_a_framework_has_the_port(binder: str, times: int) -> None:
    """In a process of its own: a server of TensorFlow's cannot be stopped."""
    words = [sys.executable, str(Path(hand_over.__file__)), binder, str(times)]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(words, env=quiet, capture_output=True, text=True, timeout=240)
    assert done.stdout.endswith("handed over\n"), done.stderr[-3000:]
    assert done.returncode == 0, done.stderr[-3000:]
