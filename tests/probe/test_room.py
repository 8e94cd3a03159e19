"""Where black boxes are kept."""

from __future__ import annotations

import tempfile

import pytest

from allaboard.probe import room


def test_in_memory_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MEMORY", tempfile.gettempdir())
    assert room.bases(1)[0] == room.MEMORY


@pytest.mark.parametrize("full", ["/proc", "/no/such/folder"])
def test_on_disk_where_memory_is_full(monkeypatch: pytest.MonkeyPatch, full: str) -> None:
    monkeypatch.setattr(room, "MEMORY", full)  # statvfs(2) finds no free block there
    assert room.bases(1) == [tempfile.gettempdir(), full]


def test_the_more_members_the_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    first, other = room.bases(10**9)  # more than any host has: memory as ever
    assert (first, other) == (room.MEMORY, tempfile.gettempdir())
