"""Where native code crashes, the stack is in the output; an abort leaves what it left before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from allaboard.launch.worker_environments import PROBE

CRASH = """from stackdump import report_crashes
report_crashes()
import os
def decode():
    os.kill(os.getpid(), {})
decode()
"""


def run(script: str, tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "train.py"
    path.write_text(script)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROBE), **variables}
    return subprocess.run(
        [sys.executable, str(path)], env=environment, capture_output=True, text=True, check=False
    )


def test_a_crash_shows_its_line_and_kills_as_before(tmp_path: Path) -> None:
    done = run(CRASH.format(int(signal.SIGSEGV)), tmp_path)
    assert done.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert 'train.py", line 5 in decode' in done.stderr


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGTERM])
def test_another_end_writes_nothing(tmp_path: Path, number: signal.Signals) -> None:
    done = run(CRASH.format(int(number)), tmp_path)
    assert done.returncode == -number
    assert done.stderr == ""


def test_a_program_keeps_its_own_settings(tmp_path: Path) -> None:
    own = "import faulthandler\nfaulthandler.enable(file=open('own.txt', 'w'), all_threads=False)\n"
    own = own.replace("own.txt", str(tmp_path / "own.txt"))
    script = own + CRASH.format(int(signal.SIGSEGV))
    assert run(script, tmp_path).stderr == ""
    assert "line 7 in decode" in (tmp_path / "own.txt").read_text()
    switched_off = run(CRASH.format(int(signal.SIGSEGV)), tmp_path, PYTHONFAULTHANDLER="")
    assert switched_off.stderr == ""


def test_a_handler_of_an_abort_stays(tmp_path: Path) -> None:
    script = "import signal\nsignal.signal(6, lambda *_: print('own', flush=True))\n"
    done = run(script + CRASH.format(int(signal.SIGABRT)), tmp_path)
    assert done.returncode == 0 and done.stdout == "own\n"
