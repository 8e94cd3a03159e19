"""What /proc says of real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from allaboard.hosts import proc

GONE = 2**22 + 1
"""Above the largest process id that Linux allows."""
SPEAKER = "import os, sys; print(os.getpid(), flush=True); sys.stdin.readline()"
PARENT = (
    f"import subprocess, sys\np = subprocess.Popen([sys.executable, '-c', {SPEAKER!r}])\np.wait()\n"
)


def speaker(code: str = SPEAKER, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_look_at_this_process() -> None:
    seen = proc.read_stat(os.getpid())
    assert seen is not None
    assert (seen.state, seen.ppid) == ("R", os.getppid())
    used = time.process_time()
    assert abs(seen.cpu_s - used) < 5
    before = proc.read_stat(os.getppid())
    assert before is not None and before.start_ticks <= seen.start_ticks


def test_a_name_with_brackets_and_spaces_is_no_trouble(tmp_path: Path) -> None:
    odd = tmp_path / "a) S 1 (b"
    odd.symlink_to("/bin/cat")
    with subprocess.Popen([str(odd)], stdin=subprocess.PIPE) as process:
        seen = proc.read_stat(process.pid)
        assert seen is not None and seen.ppid == os.getpid()


def test_descendants_come_parents_first() -> None:
    with speaker(PARENT) as parent:
        child = int(heard(parent))
        found = list(proc.descendants_of(os.getpid()))
        assert found.index(parent.pid) < found.index(child)
        assert list(proc.descendants_of(parent.pid)) == [child]
        assert proc.descendants_of(child) == {}


def test_a_process_that_is_gone() -> None:
    assert proc.read_stat(GONE) is None
    assert proc.io_bytes(GONE) == 0
    assert proc.command_line(GONE) == []
    assert proc.environment_variable(GONE, "HOME") is None
    assert not proc.has_handler(GONE, signal.SIGTERM)
    assert not proc.points_to(GONE, 1, Path("/dev/null"))
    assert proc.descendants_of(GONE) == {}


def test_a_process_that_nobody_has_waited_for() -> None:
    process = subprocess.Popen(["/bin/true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    seen = proc.read_stat(process.pid)
    assert seen is not None and seen.state == "Z"
    assert proc.io_bytes(process.pid) >= 0
    assert proc.command_line(process.pid) == []
    assert not proc.has_handler(process.pid, signal.SIGTERM)
    process.wait()


@pytest.mark.parametrize(("said", "status"), [("exit 0", 0), ("exit 3", 3 << 8), ("kill -9 $$", 9)])
def test_how_a_process_ended_that_nobody_has_waited_for(said: str, status: int) -> None:
    with subprocess.Popen(["/bin/sh", "-c", said]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert proc.wait_status(process.pid) == status
    assert proc.wait_status(process.pid) is None


def test_who_lives_has_not_ended() -> None:
    assert proc.wait_status(os.getpid()) is None


def test_stopped_is_a_state() -> None:
    with speaker() as process:
        heard(process)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        seen = proc.read_stat(process.pid)
        assert seen is not None and seen.state == "T"
        process.send_signal(signal.SIGCONT)


def test_who_catches_a_signal() -> None:
    # Said anew: who is started in the background of a shell inherits that SIGINT is ignored.
    code = (
        "import signal; signal.signal(signal.SIGUSR2, print)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n" + SPEAKER
    )
    with speaker(code) as process:
        heard(process)
        assert proc.has_handler(process.pid, signal.SIGUSR2)
        assert proc.has_handler(process.pid, signal.SIGINT)
        assert not proc.has_handler(process.pid, signal.SIGUSR1)
        assert not proc.has_handler(process.pid, signal.SIGPIPE), "ignored is not caught"
        assert not proc.has_handler(process.pid, signal.SIGRTMAX)
        assert not proc.has_handler(process.pid, 1000)


def test_where_a_descriptor_points(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    other.write_text("")
    with mine.open("w") as file:
        assert proc.points_to(os.getpid(), file.fileno(), mine)
        assert not proc.points_to(os.getpid(), file.fileno(), other)
        number = file.fileno()
    assert not proc.points_to(os.getpid(), number, mine)
    assert not proc.points_to(os.getpid(), -1, mine)


def test_bytes_and_words_of_a_process() -> None:
    environment = dict(os.environ, RANK="3", EMPTY="", ODD="a=b")
    with speaker(env=environment) as process:
        heard(process)
        assert proc.io_bytes(process.pid) > 0
        assert proc.command_line(process.pid) == [sys.executable, "-c", SPEAKER]
        words = [
            proc.environment_variable(process.pid, n)
            for n in ("RANK", "EMPTY", "ODD", "RAN", "NONE")
        ]
        assert words == ["3", "", "a=b", None, None]
