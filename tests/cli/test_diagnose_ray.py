"""`diagnose --ray`: the raylets of this host are found by their program, and the ranks below them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from allaboard.cli import diagnose
from allaboard.hosts import rank_processes
from allaboard.hosts.rank_processes import find_raylets
from allaboard.options.usage_error import UsageError


@pytest.fixture
def raylet(tmp_path: Path) -> Iterator[int]:
    """A process whose program is called raylet, below which no rank runs."""
    program = tmp_path / "raylet"
    shutil.copy(shutil.which("sleep") or "", program)
    with subprocess.Popen([str(program), "60"]) as process:
        yield process.pid
        process.kill()


def test_a_raylet_is_found_by_its_program(raylet: int, tmp_path: Path) -> None:
    assert raylet in find_raylets()
    (tmp_path / "raylet").unlink()  # Ray was upgraded meanwhile
    assert raylet in find_raylets()


def test_a_raylet_without_ranks_is_named(raylet: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=rf"process {raylet} .*no rank of a job runs below it"):
        diagnose.main(["--ray"])


def test_where_no_raylet_runs_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_processes, "RAYLET", "no-such-raylet")
    with pytest.raises(UsageError, match="no raylet runs on this host"):
        diagnose.main(["--ray"])
    with pytest.raises(UsageError, match="on each host type: allaboard diagnose --ray"):
        diagnose.main(["--ray", "--hosts", "a,b"])
