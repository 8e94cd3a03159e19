"""The models of the GPUs as their driver lists them."""

from __future__ import annotations

from pathlib import Path

from allaboard.hosts.fingerprint import gpu_types


def test_models_are_counted(tmp_path: Path) -> None:
    for place, model in (
        ("0000:10:00.0", "H100"),
        ("0000:11:00.0", "H100"),
        ("0000:12:00.0", "T400"),
    ):
        (tmp_path / place).mkdir()
        text = f"Model: \t\t NVIDIA {model}\nIRQ:   \t\t 100\nGPU UUID: \t GPU-1\n"
        (tmp_path / place / "information").write_text(text)
    assert gpu_types(tmp_path) == {"type GPUs": "2 x NVIDIA H100, 1 x NVIDIA T400"}


def test_no_driver_and_one_that_writes_something_else(tmp_path: Path) -> None:
    assert gpu_types(tmp_path / "none") == {}
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "information").write_text("nothing\n")
    assert gpu_types(tmp_path) == {}
