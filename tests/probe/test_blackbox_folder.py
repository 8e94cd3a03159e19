"""Where black boxes are kept."""

from __future__ import annotations

import tempfile

import pytest

from allaboard.probe import blackbox_folder


def test_in_memory_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blackbox_folder, "MEMORY", tempfile.gettempdir())
    assert blackbox_folder.folders_with_room(1)[0] == blackbox_folder.MEMORY


@pytest.mark.parametrize("full", ["/proc", "/no/such/folder"])
def test_on_disk_where_memory_is_full(monkeypatch: pytest.MonkeyPatch, full: str) -> None:
    monkeypatch.setattr(blackbox_folder, "MEMORY", full)  # statvfs(2) finds no free block there
    assert blackbox_folder.folders_with_room(1) == [tempfile.gettempdir(), full]


def test_the_more_members_the_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    first, other = blackbox_folder.folders_with_room(
        10**9
    )  # more than any host has: memory as ever
    assert (first, other) == (blackbox_folder.MEMORY, tempfile.gettempdir())
