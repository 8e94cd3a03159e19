"""Whether TensorFlow gets one GPU a worker, or what was chosen for it."""

from __future__ import annotations

import os
import sys

import pytest

from allaboard.probe.adapters import tensorflow, torch


@pytest.mark.parametrize(
    ("devices", "visible", "other", "left"),
    [
        ("3", None, "", "3"),
        ("3|0,1,2,3", "0,1,2,3", "", "3"),
        ("3", "-1", "", "-1"),  # the program wants none
        ("3|0,1,2,3", "", "", ""),  # who started it as well
        ("3", None, "torch", None),
        ("3", None, "jax", None),
    ],
)
def test_what_the_program_chose_stays(
    monkeypatch: pytest.MonkeyPatch, devices: str, visible: str | None, other: str, left: str | None
) -> None:
    for name in ("torch", "jax"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    if other:
        monkeypatch.setitem(sys.modules, other, sys)
    monkeypatch.setenv("ALLABOARD_DEVICES", devices)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible or "")
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    tensorflow.before_import()
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == left


@pytest.mark.parametrize(
    ("devices", "visible", "meanwhile", "left"),
    [
        ("3", None, None, None),
        ("3|0,1,2,3", "0,1,2,3", None, "0,1,2,3"),
        ("3", None, "1", "1"),  # the program has chosen meanwhile
        ("3", "3", None, "3"),  # it was never narrowed: the program wanted the same
    ],
)
def test_a_framework_that_comes_after_tensorflow_sees_all(
    monkeypatch: pytest.MonkeyPatch,
    devices: str,
    visible: str | None,
    meanwhile: str | None,
    left: str | None,
) -> None:
    for name in ("torch", "jax"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setenv("ALLABOARD_DEVICES", devices)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible or "")
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    tensorflow.before_import()
    if meanwhile is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", meanwhile)
    torch.before_import()
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == left
