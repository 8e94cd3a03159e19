"""Health and readiness files, on a real file system and a clock of the test's own."""

from __future__ import annotations

from pathlib import Path

from allaboard.schedulers.health_files import HealthFiles

UTC = 1_800_000_000.0


def test_the_health_file_is_as_old_as_the_last_progress(tmp_path: Path) -> None:
    path = tmp_path / "health"
    files = HealthFiles(path, None)
    files.update(100.0, None, 10.0, UTC)
    assert path.stat().st_mtime == UTC, "it gathers: waiting for others is no fault of its own"
    files.update(130.0, 120.0, 129.0, UTC + 30.0)
    assert path.stat().st_mtime == UTC + 29.0
    files.update(700.0, 120.0, 129.0, UTC + 600.0)
    assert path.stat().st_mtime == UTC + 29.0, "it stands still"


def test_the_health_file_is_not_written_at_every_tick(tmp_path: Path) -> None:
    path = tmp_path / "health"
    files = HealthFiles(path, None)
    files.update(100.0, 90.0, 100.0, UTC)
    path.unlink()
    files.update(100.5, 90.0, 100.5, UTC + 0.5)
    assert not path.exists()
    files.update(101.0, 90.0, 101.0, UTC + 1.0)
    assert path.stat().st_mtime == UTC + 1.0


def test_the_ready_file_is_there_from_the_roll_call_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    path.touch()
    files = HealthFiles(None, path)
    assert not path.exists(), "one of an earlier run"
    files.update(100.0, None, 0.0, UTC)
    assert not path.exists()
    files.update(101.0, 100.5, 101.0, UTC)
    assert path.exists()
    files.close()
    assert not path.exists()


def test_a_file_that_cannot_be_written_disturbs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "none" / "health"
    files = HealthFiles(path, None)
    files.update(100.0, None, 0.0, UTC)
    assert files.write_error == f"No such file or directory: {path}"


def test_without_options_nothing_is_written(tmp_path: Path) -> None:
    files = HealthFiles(None, None)
    files.update(100.0, 90.0, 100.0, UTC)
    files.close()
    assert not files.write_error and not list(tmp_path.iterdir())
