"""The newest snapshot of a job that did not come to its end is left as a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from allaboard.agent.snapshot_export import export_snapshot


def kept(memory: Path, number: int, step: int, *, whole: bool = True) -> None:
    prefix = memory / f"snapshot-{number}"
    prefix.with_name(prefix.name + ".index").write_text("index")
    if whole:
        prefix.with_name(prefix.name + ".data-00000-of-00001").write_text(str(step))
    told = {"number": number, "step": step, "at": 1.0, "prefix": str(prefix)}
    (memory / "snapshot.json").write_text(json.dumps(told))


def test_it_is_found_as_a_checkpoint_is(tmp_path: Path) -> None:
    kept(tmp_path, 7, 420)
    left = export_snapshot(tmp_path, tmp_path / "run/snapshot")
    assert left is not None and left.step == 420
    assert {p.name: p.read_text() for p in left.folder.iterdir()} == {
        "checkpoint": 'model_checkpoint_path: "model.ckpt-420"\n'
        'all_model_checkpoint_paths: "model.ckpt-420"\n',
        "model.ckpt-420.index": "index",
        "model.ckpt-420.data-00000-of-00001": "420",
    }
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["snapshot"]


def test_where_none_was_taken_nothing_is_left(tmp_path: Path) -> None:
    assert export_snapshot(tmp_path, tmp_path / "run/snapshot") is None
    assert not (tmp_path / "run").exists()


def test_half_of_one_is_none(tmp_path: Path) -> None:
    kept(tmp_path, 7, 420, whole=False)
    with pytest.raises(FileNotFoundError):
        export_snapshot(tmp_path, tmp_path / "run/snapshot")
    assert list((tmp_path / "run").iterdir()) == []
