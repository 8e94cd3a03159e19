"""Which framework a process has loaded."""

from __future__ import annotations

import subprocess

import pytest

from allaboard.hosts.loaded_framework import framework_in_maps, loaded_framework

_LINE = "7f00-7f01 r-xp 00000000 fe:00 12  /v/lib/python3.11/site-packages/%s\n"
_JAX = _LINE % "jaxlib/libjax_common.so"
_TORCH = _LINE % "torch/lib/libtorch_cpu.so"


@pytest.mark.parametrize(
    ("maps", "expected"),
    [
        (_JAX, "jax"),
        (_TORCH, "torch"),
        (_LINE % "tensorflow/libtensorflow_cc.so.2", "tensorflow"),
        (_JAX + _TORCH, ""),
        (_LINE % "numpy/_core/_multiarray_umath.so", ""),
        ("7f00-7f01 rw-p 00000000 00:00 0\n", ""),
        ("", ""),
    ],
)
def test_one_framework_is_named_and_of_several_none(maps: str, expected: str) -> None:
    assert framework_in_maps(maps) == expected


def test_of_a_process_without_any_and_of_one_that_is_not_there() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        assert loaded_framework(child.pid) == ""
        child.kill()
    assert loaded_framework(child.pid) == ""
