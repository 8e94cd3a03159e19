"""What a host is, and that a bed leaves nothing behind, whatever ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bedded import Lab, need
from testbed import Bed, CommandFailed, missing
from testbed.bed import PREFIX


def traces(owner: int) -> list[str]:
    """Processes and folders that are there on behalf of that pid's beds."""
    found = [str(p) for p in Path(tempfile.gettempdir()).glob(f"{PREFIX}{owner}-*")]
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b'"owner": %d,' % owner in words or b"bed-test-%d" % owner in words:
                found.append(words.decode())
    return found


def machine() -> tuple[str, str, str]:
    """What of the machine itself a bed must not change."""
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    return Path("/proc/self/mountinfo").read_text(), links, Path("/etc/hosts").read_text()


def until(true: Callable[[], bool], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


def sleeper(bed: Bed, host: str) -> None:
    """A process that outlives its parent, in a session of its own, named after the bed's owner."""
    code = f"exec -a bed-test-{os.getpid()} sleep 600"
    bed.run(host, "setsid", "--fork", "bash", "-c", f"({code}) >/dev/null 2>&1")


def test_a_host_is_a_host(lab: Lab) -> None:
    bed = lab.bed
    assert bed.run("h1", "hostname").strip() == "h1"
    assert bed.run("h1", "sh", "-c", "ls -m /sys/class/net").strip() == "eth0, lo"
    assert bed.run("h1", "getent", "hosts", "h2").split() == [bed.addresses["h2"], "h2"]
    assert "h1" in bed.run("h1", "cat", "/etc/hostname")
    assert bed.run("h1", "pwd").strip() == str(Path.cwd())
    uptimes = [float(bed.run(h, "cat", "/proc/uptime").split()[0]) for h in bed.hosts]
    assert uptimes[1] - uptimes[0] > 90_000
    bed.path("h1", "/dev/shm/here").touch()
    assert bed.run("h1", "ls", "/dev/shm").strip() == "here"
    assert bed.run("h2", "ls", "/dev/shm").strip() == ""


def test_there_is_no_way_out(lab: Lab) -> None:
    assert lab.dial(to="192.0.2.1", port=80) == "no network"


def test_a_folder_is_a_hosts_own_or_read_only(lab: Lab, tmp_path: Path) -> None:
    lab.bed.cover("h1", str(tmp_path))
    lab.bed.cover("h2", str(tmp_path), read_only=True)
    lab.bed.run("h1", "touch", f"{tmp_path}/mine")
    assert not (tmp_path / "mine").exists()
    with pytest.raises(CommandFailed, match="Read-only"):
        lab.bed.run("h2", "touch", f"{tmp_path}/mine")


def test_a_command_is_ended_with_all_it_started(lab: Lab) -> None:
    process = lab.bed.start("h1", ["sh", "-c", "sleep 600 & echo $!; wait"])
    assert until(lambda: process.text() != "")
    process.kill()
    assert process.poll() == -signal.SIGKILL
    assert until(lambda: "sleep 600" not in lab.bed.run("h1", "ps", "ax"))


def test_exit_codes_and_signals_are_the_commands(lab: Lab) -> None:
    assert lab.bed.start("h1", ["sh", "-c", "exit 7"]).wait(10) == 7
    process = lab.bed.start("h1", ["sleep", "600"])
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == -signal.SIGTERM
    process.kill()
    with pytest.raises(CommandFailed, match=r"(?s)h1: no-such-command.*127.*no-such-command"):
        lab.bed.run("h1", "no-such-command")


def test_two_beds_at_once_and_nothing_is_left() -> None:
    need()
    before, there = machine(), len(traces(os.getpid()))
    with Bed(2) as one, Bed(2) as other:
        for bed in (one, other):
            sleeper(bed, "h1")
            assert "bed-test" in bed.run("h1", "ps", "ax")
        one.unplug("h1")
        assert len(traces(os.getpid())) > there + 4
        assert machine() == before
    assert len(traces(os.getpid())) == there
    assert machine() == before


def test_a_bed_ends_with_a_command_that_is_stopped() -> None:
    need()
    bed = Bed(1).__enter__()
    ending = threading.Thread(target=bed.close, daemon=True)
    process = bed.start("h0", ["sleep", "600"])
    outer = Path(f"/proc/{process._outer.pid}/stat")
    try:
        process.send_signal(signal.SIGSTOP)
        assert until(lambda: outer.read_text().rpartition(")")[2].split()[0] == "T")
        ending.start()
        ending.join(15)
        assert not ending.is_alive()
        assert process.poll() == -signal.SIGKILL
    finally:
        process._outer.kill()


@pytest.mark.parametrize("end", ["owner", "keeper", "both", "lifetime"])
def test_nothing_is_left_whatever_ends_it(end: str) -> None:
    need()
    before = machine()
    lifetime = 1 if end == "lifetime" else 60
    code = (
        f"import sys, time; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); from testbed import Bed\n"
        f"bed = Bed(2, lifetime={lifetime}).__enter__()\n"
        "bed.start('h1', ['sleep', '600'])\n"
        "print(bed._keeper.pid, bed.first('h1'), flush=True); time.sleep(600)"
    )
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    try:
        with owner.stdout:
            keeper, first = map(int, owner.stdout.readline().split())
        assert Path(f"/proc/{first}").exists()
        if end in ("keeper", "both"):
            os.kill(keeper, signal.SIGKILL)
        if end in ("owner", "both"):
            owner.kill()
        assert until(lambda: not Path(f"/proc/{first}").exists())
        if end == "both":
            owner.wait()
            with Bed(1):
                pass
        assert machine() == before
    finally:
        owner.kill()
        owner.wait()
    if end != "keeper":
        assert until(lambda: not traces(owner.pid)), traces(owner.pid)
    with Bed(1):
        assert traces(owner.pid) == []


@pytest.mark.alone
def test_four_hosts_are_there_at_once() -> None:
    need()
    took = []
    for _ in range(3):
        began = time.monotonic()
        with Bed(4):
            took.append(time.monotonic() - began)
    assert min(took) < 0.5


def test_what_is_missing_is_said() -> None:
    assert "apt-get install" in missing("no-such-program") or missing() != ""


def test_a_signal_goes_to_the_first_process_of_a_command(lab: Lab) -> None:
    process = lab.bed.start("h1", ["sleep", "612"])
    elsewhere = lab.bed.start("h2", ["sleep", "612"])
    commands = [Path(f"/proc/{one.pid}/cmdline") for one in (process, elsewhere)]
    assert until(lambda: {c.read_bytes() for c in commands} == {b"sleep\x00612\x00"})
    lab.bed.signal("h1", signal.SIGTERM, r"\S*sleep 6\d2$")
    assert process.wait(10) in (-signal.SIGTERM, 128 + signal.SIGTERM)
    assert elsewhere.poll() is None
    with pytest.raises(CommandFailed, match="no process is like nobody"):
        lab.bed.signal("h1", signal.SIGTERM, "nobody")
    elsewhere.kill()
