"""A worker that is `timeout` or a shell around Python is known to be none that lacks the probe."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from allaboard.agent.observation.process_watcher import ProcessWatcher
from allaboard.protocol.events import ProcessSampled

SLEEP = "import time; time.sleep(30)"


def wraps_python(folder: Path, *command: str) -> bool:
    """Return what the watcher says of this command once it has started its child."""
    process = subprocess.Popen(command)
    try:
        watcher = ProcessWatcher(folder)
        watcher.add_worker(0, process.pid)
        for look in range(30):
            (sample,) = watcher.sample_processes(float(look * 2))
            assert isinstance(sample, ProcessSampled)
            if sample.wraps_python:
                return True
            time.sleep(0.05)
        return False
    finally:
        process.terminate()
        process.wait()


@pytest.mark.skipif(shutil.which("timeout") is None, reason="needs timeout(1)")
def test_timeout_wraps_python(tmp_path: Path) -> None:
    assert wraps_python(tmp_path, "timeout", "30", sys.executable, "-c", SLEEP)
    assert wraps_python(tmp_path, "timeout", "30", sys.executable, "-u", "-c", SLEEP)


@pytest.mark.skipif(shutil.which("timeout") is None, reason="needs timeout(1)")
def test_a_python_that_keeps_the_probe_away_is_none(tmp_path: Path) -> None:
    assert not wraps_python(tmp_path, "timeout", "30", sys.executable, "-I", "-c", SLEEP)


def test_python_itself_and_other_programs_wrap_nothing(tmp_path: Path) -> None:
    assert not wraps_python(tmp_path, sys.executable, "-c", SLEEP)
    assert not wraps_python(tmp_path, "sleep", "30")
