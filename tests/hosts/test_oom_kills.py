"""Each kill of the kernel explains one end."""

from __future__ import annotations

from pathlib import Path

from allaboard.hosts.oom import OomKills


def _counted(file: Path, kills: int) -> Path:
    file.write_text(f"low 0\noom 3\noom_kill {kills}\n")
    return file


def test_who_shares_the_group_is_not_struck_by_the_same_kill(tmp_path: Path) -> None:
    file = _counted(tmp_path / "memory.events", 2)
    kills = OomKills()
    for worker in (0, 1, 2):
        kills.watch_group(worker, file)
    assert not kills.claim_kill(0)
    _counted(file, 3)
    assert kills.claim_kill(1)
    assert not kills.claim_kill(0) and not kills.claim_kill(1)
    _counted(file, 5)
    assert kills.claim_kill(0) and kills.claim_kill(2) and not kills.claim_kill(1)


def test_groups_of_their_own(tmp_path: Path) -> None:
    one, other = _counted(tmp_path / "one", 0), _counted(tmp_path / "other", 0)
    kills = OomKills()
    kills.watch_group(0, one)
    kills.watch_group(1, other)
    kills.watch_group(1, None)
    _counted(other, 1)
    assert not kills.claim_kill(0) and kills.claim_kill(1)


def test_a_group_that_came_later_and_one_that_went(tmp_path: Path) -> None:
    first, second = _counted(tmp_path / "first", 0), _counted(tmp_path / "second", 7)
    kills = OomKills()
    kills.watch_group(0, first)
    kills.watch_group(0, second)
    first.unlink()
    assert not kills.claim_kill(0)
    _counted(second, 8)
    assert kills.claim_kill(0)
