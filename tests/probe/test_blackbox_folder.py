"""Where black boxes are kept."""

from __future__ import annotations

import tempfile

import pytest

from allaboard.probe import blackbox_folder


def test_in_memory_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blackbox_folder, "MEMORY", tempfile.gettempdir())
    assert next(blackbox_folder.folders_with_room(1)) == blackbox_folder.MEMORY


@pytest.mark.parametrize("full", ["/proc", "/no/such/folder"])
def test_on_disk_where_memory_is_full(monkeypatch: pytest.MonkeyPatch, full: str) -> None:
    monkeypatch.setattr(blackbox_folder, "MEMORY", full)  # statvfs(2) finds no free block there
    assert list(blackbox_folder.folders_with_room(1)) == [tempfile.gettempdir(), full]


def test_the_more_members_the_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    first, other = blackbox_folder.folders_with_room(
        10**9
    )  # more than any host has: memory as ever
    assert (first, other) == (blackbox_folder.MEMORY, tempfile.gettempdir())


def test_no_temporary_folder_is_looked_for_while_memory_has_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_folder() -> str:
        raise FileNotFoundError("no usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", no_folder)
    assert list(blackbox_folder.folders_with_room(1)) == [blackbox_folder.MEMORY]
