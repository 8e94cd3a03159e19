"""The run folder, where others can write too."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from allaboard.options.run_folder import create_run_folder
from allaboard.options.usage_error import UsageError


@pytest.fixture
def working(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, with a temporary folder beside it."""
    (tmp_path / "work").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "work"


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_is_private(working: Path) -> None:
    folder = create_run_folder(None, "job")
    assert folder == working / ".allaboard" / "job"
    assert {_mode(p) for p in (folder, folder.parent, folder / "logs")} == {0o700}
    assert (folder.parent / ".gitignore").read_text() == "*\n"


def test_a_link_in_place_of_a_file_is_not_followed(working: Path) -> None:
    (working / ".allaboard").mkdir()
    (working / ".allaboard" / ".gitignore").symlink_to(working / "made")
    create_run_folder(None, "job")
    assert not (working / "made").exists()


def test_a_folder_that_is_too_open_is_narrowed(working: Path) -> None:
    (working / ".allaboard").mkdir()
    (working / ".allaboard").chmod(0o777)
    assert create_run_folder(None, "job").parent == working / ".allaboard"
    assert _mode(working / ".allaboard") == 0o700


def test_a_link_in_place_of_the_folder_is_not_followed(
    working: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (working / "elsewhere").mkdir()
    (working / ".allaboard").symlink_to(working / "elsewhere")
    folder = create_run_folder(None, "job")
    assert folder == working.parent / "temporary" / f"allaboard-{os.getuid()}" / "job"
    assert not list((working / "elsewhere").iterdir())
    assert (
        f"{working}/.allaboard is a link; this run is recorded in {folder}"
        in capsys.readouterr().err
    )


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make folders of another user")
def test_a_folder_of_another_user_is_not_taken(
    working: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (working / ".allaboard").mkdir()
    os.chown(working / ".allaboard", 65534, 65534)
    fallback = working.parent / "temporary" / f"allaboard-{os.getuid()}"
    assert create_run_folder(None, "job").parent == fallback
    assert "belongs to another user (uid 65534)" in capsys.readouterr().err
    os.chown(fallback, 65534, 65534)
    with pytest.raises(UsageError, match=r"belongs to another user.*give --run-dir"):
        create_run_folder(None, "job")


def test_the_folder_that_the_user_named(working: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = create_run_folder(Path("new/runs/1"), "job")
    assert folder == working / "new" / "runs" / "1"
    assert {_mode(p) for p in (folder, folder.parent, folder / "logs")} == {0o700}
    assert _mode(folder / "journal.jsonl") == 0o600
    folder.chmod(0o755)  # its files are private all the same
    assert create_run_folder(folder, "job") == folder
    assert not capsys.readouterr().err
    folder.chmod(0o777)
    create_run_folder(folder, "job")
    assert "every user can remove or replace the files of this run" in capsys.readouterr().err


def test_a_link_that_the_user_named_is_taken_once(working: Path) -> None:
    (working / "target").mkdir()
    (working / "link").symlink_to("target")
    assert create_run_folder(Path("link"), "job") == working / "target"


def test_logs_that_are_a_link_are_refused(working: Path) -> None:
    (working / "runs").mkdir()
    (working / "elsewhere").mkdir()
    (working / "runs" / "logs").symlink_to(working / "elsewhere")
    with pytest.raises(UsageError, match="--run-dir runs"):
        create_run_folder(Path("runs"), "job")
