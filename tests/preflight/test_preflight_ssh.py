"""`preflight --hosts` with far ends that hang, refuse, or are not there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from allaboard.preflight.ssh_wait import END_MARGIN_S, is_overdue

FAR = Path(__file__).with_name("far_end.py")
WORDS = (
    sys.executable,
    "-m",
    "allaboard",
    "preflight",
    "--quick",
    "--ssh",
    f"{sys.executable} {FAR}",
)


def start(hosts: str, folder: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*WORDS, "--hosts", hosts, *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
    )  # fmt: skip


def test_when_one_is_overdue() -> None:
    assert not is_overdue(29.0 + END_MARGIN_S, 0.0, 0.0, [10.0], 30.0), (
        "it may still wait for others"
    )
    assert is_overdue(30.0 + END_MARGIN_S, 0.0, 0.0, [10.0], 30.0)
    assert not is_overdue(30.0 + END_MARGIN_S, 0.0, 29.0, [29.0, 40.0], 30.0), (
        "another has just ended"
    )
    assert not is_overdue(50.0 + END_MARGIN_S, 0.0, 25.0, [], 30.0), "they still say something"
    assert is_overdue(56.0 + END_MARGIN_S, 0.0, 25.0, [], 30.0)


@pytest.mark.timeout(120)
def test_a_host_that_hangs_is_named_and_not_waited_for(tmp_path: Path) -> None:
    began = time.monotonic()
    process = start("fine,hangs,fine2", tmp_path, "--timeout", "1", "--bound", "1")
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 3, errors
    assert "hangs was reached, but its preflight neither answers nor ends" in errors
    assert time.monotonic() - began < 60


def test_ctrl_c_ends_it_on_every_host(tmp_path: Path) -> None:
    process = start("waits1,waits2", tmp_path)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert "interrupted; ending it on waits1, waits2" in errors and "Traceback" not in errors
    assert (tmp_path / "waits1.ended").exists() and (tmp_path / "waits2.ended").exists()


def test_one_that_refuses_ends_the_others_at_once(tmp_path: Path) -> None:
    began = time.monotonic()
    process = start("waits1,refuses", tmp_path)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2 and "wrong use" in errors
    assert time.monotonic() - began < 15 and (tmp_path / "waits1.ended").exists()


def test_two_names_of_one_host(tmp_path: Path) -> None:
    process = start("waits,waits.alias", tmp_path)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "waits and waits.alias are one host" in errors


def test_what_is_not_there_is_told_with_what_to_type(tmp_path: Path) -> None:
    process = start("fine,unreached,bare", tmp_path)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "no login on unreached: ssh: connect to host" in errors
    assert "-o BatchMode=yes unreached true" in errors
    assert "allaboard did not start on bare: env: '/opt/python'" in errors
    assert f"-o BatchMode=yes bare {sys.executable} -m allaboard --version" in errors


def test_a_preflight_ends_when_ssh_does(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "allaboard", "preflight", "--quick", "--leashed", "h0,h1"]
    variables = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29731"}
    with subprocess.Popen(
        [*words, "--run-dir", "run"], env={**os.environ, **variables}, cwd=tmp_path,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write("known to both\n")
        process.stdin.flush()
        assert process.stderr.readline().startswith("allaboard preflight runs on: ")
        time.sleep(5)
        assert process.poll() is None
        process.stdin.close()
        # Before its handlers are there, the signal ends it as any program; a shell sees 143 both times.
        assert process.wait(20) in (143, -signal.SIGTERM)
