"""`allaboard preflight` whose hosts find each other in a real etcd: processes of one host."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from free_ports import free_port
from multihost_drills.run_host_drill import CLUSTER
from real_etcd import started

pytestmark = pytest.mark.skipif(
    shutil.which("etcd") is None, reason="no etcd: apt-get install etcd-server"
)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with started(tmp_path_factory.mktemp("etcd")) as found:
        yield found


def preflight(
    folder: Path, ranks: range, size: int, place: str, *options: str
) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of each; the one where all met wrote found.json."""
    usual = {k: v for k, v in os.environ.items() if not k.startswith(CLUSTER)}
    words = [sys.executable, "-m", "allaboard", "preflight", "--quick", "--coordinator", place]
    words += ["--format", "json", "--output", "found.json", *options]
    running = [
        subprocess.Popen(
            [*words, "--run-dir", f"run{rank}"],
            env={**usual, "RANK": str(rank), "WORLD_SIZE": str(size)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
        )
        for rank in ranks
    ]
    told = [p.communicate(timeout=90) for p in running]
    return [(p.returncode, *words) for p, words in zip(running, told, strict=True)]


def found(folder: Path, rank: int = 0) -> dict[str, Any]:
    name = f"found.rank{rank}.json" if rank else "found.json"
    return json.loads((folder / name).read_text())  # type: ignore[no-any-return]


def test_one_endpoint_down_and_one_mute(port: int, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        place = f"127.0.0.1:{free_port()},127.0.0.1:{mute.getsockname()[1]},127.0.0.1:{port}"
        ended = preflight(tmp_path, range(3), 3, f"etcd://{place}/preflight", "--timeout", "30")
    assert [code for code, *_ in ended] == [0, 0, 0], "\n".join(e for *_, e in ended)
    told = found(tmp_path)
    assert [m["state"] for m in told["members"]] == ["aboard"] * 3 and told["outcome"] == "ok"
    assert told["place"].startswith("etcd://")


def test_who_is_missing_is_told_to_all(port: int, tmp_path: Path) -> None:
    place = f"etcd://127.0.0.1:{port}/missing"
    ended = preflight(tmp_path, range(2), 3, place, "--timeout", "4")
    assert [code for code, *_ in ended] == [3, 3]
    assert all("rank 2 has not joined" in errors for *_, errors in ended), ended


def test_an_etcd_that_is_down_is_told(tmp_path: Path) -> None:
    place = f"etcd://127.0.0.1:{free_port()},127.0.0.1:{free_port()}/down"
    ended = preflight(tmp_path, range(2), 2, place, "--timeout", "4")
    assert [code for code, *_ in ended] == [3, 3]
    for rank in range(2):
        assert "NET016" in {f["rule"] for f in found(tmp_path, rank)["findings"]}
