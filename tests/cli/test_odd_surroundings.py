"""What surrounds a run may be odd: the job goes on, and ends as it would have."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from allaboard.hosts import proc

LIMIT = 60


class Job:
    """``allaboard run`` of one small script, which runs now."""

    def __init__(self, folder: Path, script: str, *options: str, **how: Any) -> None:
        self.folder = folder
        file = folder / "train.py"
        file.write_text("import os, signal, sys, time\nfrom pathlib import Path\n" + script)
        words: list[Any] = [
            sys.executable,
            "-m",
            "allaboard",
            "run",
            "--run-dir",
            str(folder / "run"),
        ]
        words += [*options, str(file), *how.pop("arguments", ())]
        how.setdefault("stdout", subprocess.PIPE)
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, cwd=folder, **how)

    def until(self, there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT
        while not there():
            assert self.process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)

    def wrote(self, name: str) -> Path:
        """This file of its script, once it is there and allaboard itself is up."""
        file, journal = self.folder / name, self.folder / "run/journal.jsonl"
        self.until(lambda: file.exists() and journal.exists())
        self.until(lambda: b'"kind":"worker"' in journal.read_bytes())
        return file

    def end(self) -> tuple[int, str, dict[str, Any]]:
        """Its exit code, what it said, and its report."""
        _, said = self.process.communicate(timeout=LIMIT)
        report = json.loads((self.folder / "run/report.json").read_text())
        return self.process.returncode, said.decode(), report


SAVES = """
def save(number, _):
    time.sleep(0.5)
    Path("saved").touch()
    sys.exit(0)
signal.signal(signal.SIGHUP, save)
Path("ready").write_text(str(os.getpid()))
time.sleep(60)
"""


def test_a_terminal_that_closes_is_told_twice_and_leaves_the_grace(tmp_path: Path) -> None:
    job = Job(tmp_path, SAVES, "-n", "1")
    job.wrote("ready")
    for _ in range(2):  # of its shell, and of the kernel
        job.process.send_signal(signal.SIGHUP)
        time.sleep(0.05)
    _, said, _ = job.end()
    assert (tmp_path / "saved").exists()
    assert "SIGHUP passed to worker 0" in said and "again: killing" not in said


def test_ctrl_z_stops_the_workers_too_and_fg_lets_them_go_on(tmp_path: Path) -> None:
    script = 'Path("ready").write_text(str(os.getpid()))\nwhile not Path("go").exists(): time.sleep(0.01)'
    job = Job(tmp_path, script, "-n", "1")
    file = job.wrote("ready")
    job.until(lambda: bool(file.read_text()))
    worker = int(file.read_text())

    def state(pid: int) -> str:
        seen = proc.read_stat(pid)
        return seen.state if seen is not None else ""

    job.process.send_signal(signal.SIGTSTP)
    job.until(lambda: (state(job.process.pid), state(worker)) == ("T", "T"))
    job.process.send_signal(signal.SIGCONT)
    job.until(lambda: "T" not in (state(job.process.pid), state(worker)))
    (tmp_path / "go").touch()
    code, _, report = job.end()
    assert (code, report["outcome"]) == (0, "completed")


def test_an_argument_that_is_no_utf_8(tmp_path: Path) -> None:
    job = Job(tmp_path, "sys.exit(not os.fsencode(sys.argv[1]).endswith(b'caf\\xe9'))", "-n", "1",
              arguments=(b"/data/caf\xe9",))  # fmt: skip
    code, said, report = job.end()
    assert (code, report["command"][-1]) == (0, "/data/caf?")
    assert "Traceback" not in said
    journal = (tmp_path / "run/journal.jsonl").read_text().splitlines()
    assert json.loads(journal[0])["command"][-1] == "/data/caf?"


def test_a_stream_that_does_not_wait_loses_nothing(tmp_path: Path) -> None:
    """ssh and rsync make the streams so that they share with others."""
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETFL, os.O_NONBLOCK)
    job = Job(
        tmp_path, "print('x' * 60 + '\\n', end='', flush=True)\n" * 3000, "-n", "1", stdout=write
    )
    os.close(write)
    got = b""
    with os.fdopen(read, "rb", buffering=0) as stream:
        while data := stream.read(1000):
            got += data
            time.sleep(0.0005)
    code, _, _ = job.end()
    assert (code, got.count(b"x" * 60)) == (0, 3000)


OLD_HEADERS = """
import os, signal
for place, names in ((os, ("pidfd_open", "memfd_create")), (signal, ("pidfd_send_signal",))):
    for name in names:
        if hasattr(place, name):
            delattr(place, name)
"""


def test_a_python_that_was_built_for_an_older_kernel(tmp_path: Path) -> None:
    """As those of conda: without pidfd_open and memfd_create."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(OLD_HEADERS)
    path = os.pathsep.join(p for p in (str(site), os.environ.get("PYTHONPATH")) if p)
    job = Job(tmp_path, "time.sleep(0.5)", "-n", "2", env=os.environ | {"PYTHONPATH": path})
    code, said, report = job.end()
    assert (code, report["findings"], "Traceback" in said) == (0, [], False)


def test_the_working_folder_is_gone_when_it_is_to_start_again(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    script = "import shutil\nshutil.rmtree(os.getcwd())\nsys.exit(1)"
    file = tmp_path / "train.py"
    file.write_text("import os, sys\n" + script)
    words = [sys.executable, "-m", "allaboard", "run", "--run-dir", str(tmp_path / "run"), "-n", "1",
             "--on-failure", "restart", "--max-restarts", "1", str(file)]  # fmt: skip
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert (tmp_path / "run/report.json").exists()


def test_a_command_of_many_arguments(tmp_path: Path) -> None:
    """A megabyte, as of shards/*.tar."""
    many = [f"{n:0100}" for n in range(12_000)]
    job = Job(tmp_path, "sys.exit(len(sys.argv) != 12_001)", "-n", "2", arguments=many)
    assert job.end()[0] == 0


def test_a_working_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    folder, file, shell = tmp_path / "work", tmp_path / "train.py", tmp_path / "start.sh"
    folder.mkdir()
    file.write_text("")
    run = f"{sys.executable} -m allaboard run --run-dir {tmp_path}/run -n 1 {file}"
    shell.write_text(f"rmdir {folder}; exec {run}")
    words = ["sh", str(shell)]
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode not in (0, 1) and "Traceback" not in done.stderr
    assert "folder" in done.stderr
