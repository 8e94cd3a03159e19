"""One process that was started as it is: who calls allaboard in its place gets what it would have got."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from free_ports import free_port

RUN = [sys.executable, "-m", "allaboard", "run"]
CLUSTER = {"MASTER_ADDR": "127.0.0.1", "RANK": "0", "WORLD_SIZE": "2"}


def run(
    tmp_path: Path, script: str, *options: str, cluster: bool = False, dashes: bool = False
) -> tuple[int, dict[str, Any]]:
    """How allaboard itself ended (negative: by a signal), and its report."""
    file = tmp_path / "train.py"
    file.write_text("import os, signal, sys\n" + script)
    words = ["--", sys.executable, str(file)] if dashes else [str(file)]
    command = [*RUN, "--run-dir", str(tmp_path / "run"), *options, *words]
    environment = {**os.environ, **(CLUSTER if cluster else {})}
    if cluster:
        # Else its agent stays for 15 s where the hosts meet, to tell the second one what became of the first.
        command[4:4] = ["--timeout", "2"]
        environment["MASTER_PORT"] = str(free_port())
    done = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    return done.returncode, json.loads((tmp_path / "run/report.json").read_text())


@pytest.mark.parametrize("cluster", [False, True], ids=["alone", "joined"])
@pytest.mark.parametrize("code", [0, 1, 3, 7, 143])
def test_the_exit_code_passes_through(tmp_path: Path, code: int, cluster: bool) -> None:
    got, report = run(tmp_path, f"sys.exit({code})", cluster=cluster)
    assert (got, report["exit_code"]) == (code, code)
    assert report["outcome"] == ("failed" if code else "completed")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_the_signal_passes_through(tmp_path: Path, number: signal.Signals) -> None:
    got, report = run(tmp_path, f"os.kill(os.getpid(), {int(number)})", cluster=True)
    assert (got, report["exit_code"]) == (-number, 128 + number)
    assert not list(tmp_path.glob("core*"))


def test_a_command_that_is_run_as_it_is(tmp_path: Path) -> None:
    assert run(tmp_path, "sys.exit(9)", dashes=True)[0] == 9


def test_workers_of_n_are_several_and_have_no_code_of_their_own(tmp_path: Path) -> None:
    assert run(tmp_path, "sys.exit(9)", "-n", "1")[0] == 1
