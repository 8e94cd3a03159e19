"""Files of a run are this user's alone, and no name leads them elsewhere."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from allaboard.launch.private_files import (
    create_file,
    open_folder,
    open_to_append,
    replace_file,
    write_named_file,
)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "run").mkdir()
    handle = open_folder(tmp_path / "run")
    yield handle
    os.close(handle)


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    file = tmp_path / "precious"
    file.write_text("mine")
    return file


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_appends_to_a_file_of_its_own(tmp_path: Path, folder: int) -> None:
    for text in (b"a", b"b"):
        file = open_to_append("log", folder)
        os.write(file, text)
        os.close(file)
    assert (tmp_path / "run" / "log").read_bytes() == b"ab"
    assert _mode(tmp_path / "run" / "log") == 0o600


def test_a_file_of_an_earlier_run_is_narrowed(tmp_path: Path, folder: int) -> None:
    old = tmp_path / "run" / "log"
    old.touch()
    old.chmod(0o644)
    os.close(open_to_append(old))
    assert _mode(old) == 0o600


@pytest.mark.parametrize("kind", ["link", "dangling", "hard link", "pipe", "folder"])
def test_nothing_else_is_taken_for_a_log(
    kind: str, tmp_path: Path, folder: int, precious: Path
) -> None:
    name = tmp_path / "run" / "log"
    if kind == "link":
        name.symlink_to(precious)
    elif kind == "dangling":
        name.symlink_to(tmp_path / "not there")
    elif kind == "hard link":
        name.hardlink_to(precious)
    elif kind == "pipe":
        os.mkfifo(name)
    else:
        name.mkdir()
    with pytest.raises(OSError):
        open_to_append("log", folder)
    assert precious.read_text() == "mine" and not (tmp_path / "not there").exists()


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path, folder: int) -> None:
    (tmp_path / "led").symlink_to(tmp_path / "run")
    with pytest.raises(OSError):
        open_to_append(tmp_path / "led" / "log")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make files of another user")
def test_a_file_of_another_user_is_refused(tmp_path: Path, folder: int) -> None:
    (tmp_path / "run" / "log").touch()
    os.chown(tmp_path / "run" / "log", 65534, 65534)
    with pytest.raises(OSError):
        open_to_append("log", folder)
    os.chown(tmp_path / "run", 65534, 65534)  # as a network file system shows root's own files
    os.close(open_to_append("log", folder))


def test_a_link_in_its_place_is_replaced_not_followed(
    tmp_path: Path, folder: int, precious: Path
) -> None:
    (tmp_path / "run" / "report.json").symlink_to(precious)
    (tmp_path / "run" / f".report.json.{os.getpid()}").symlink_to(precious)
    replace_file("report.json", b"{}", folder)
    assert precious.read_text() == "mine"
    assert not (tmp_path / "run" / "report.json").is_symlink()
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["report.json"]


def test_who_swaps_the_folder_gets_nothing(tmp_path: Path, folder: int, precious: Path) -> None:
    (tmp_path / "run").rename(tmp_path / "stolen")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "report.json").symlink_to(precious)
    replace_file("report.json", b"{}", folder)
    assert precious.read_text() == "mine"
    assert (tmp_path / "stolen" / "report.json").read_bytes() == b"{}"


def test_a_new_file_takes_no_name_that_is_taken(
    tmp_path: Path, folder: int, precious: Path
) -> None:
    (tmp_path / "run" / "new").symlink_to(tmp_path / "not there")
    with pytest.raises(FileExistsError):
        create_file("new", b"x", folder)
    assert not (tmp_path / "not there").exists()


def test_a_file_that_the_user_named(tmp_path: Path, precious: Path) -> None:
    write_named_file(tmp_path / "new.json", b"1")
    assert _mode(tmp_path / "new.json") == 0o600
    precious.chmod(0o640)
    (tmp_path / "link").symlink_to(precious)
    write_named_file(tmp_path / "link", b"2")
    assert precious.read_bytes() == b"2" and _mode(precious) == 0o640
    assert (tmp_path / "link").is_symlink()


def test_a_pipe_that_the_user_named(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_named_file(pipe, b"3")
    reader.join(10)
    assert read == [b"3"] and stat.S_ISFIFO(pipe.stat().st_mode)
