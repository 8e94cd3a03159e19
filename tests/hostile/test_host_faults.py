"""Hosts on which something is used up, missing or closed: the job trains on, or ends with a message that says
why, and nothing of it is left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from failing_call_runs import JOBS, FailingCall, run_job, violations

FAULTS = {
    "64 open files": "ulimit -n 64",
    "24 open files": "ulimit -n 24",
    "12 open files": "ulimit -n 12",
    "files of 1 KiB": "ulimit -f 1",
    "no core and no locked memory": "ulimit -c 0 -l 0",
    "no HOME": "unset HOME",
    "a HOME that there is not": "export HOME=/nowhere",
    "no environment but PATH": "for n in $(compgen -e); do case $n in PATH|DONE|MARK|TMPDIR|PYTHONPATH) ;; "
    '*) unset "$n" ;; esac; done',
    "ASCII alone": "export LANG=C LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0",
    "another time zone": "export TZ=Mars/Olympus",
    "a temporary folder that there is not": "export TMPDIR=/nowhere",
    "no standard input": "exec 0<&-",
    "no standard error": "exec 2>&-",
    "no standard output": "exec 1>&-",
    "no standard streams": "exec 0<&- 1>&- 2>&-",
    "standard output on a full disk": "exec 1>/dev/full",
    "standard error on a full disk": "exec 2>/dev/full",
    "standard output that nobody reads": "exec 1> >(exit 0)",
    "signals ignored": "trap '' TERM INT HUP PIPE CHLD",
    "a umask that takes all": "umask 777",
    "a working folder that is removed": "mkdir -p gone && cd gone && rmdir ../gone",
}
"""What is done before the agent starts."""
MOUNTS = {
    "memory of 4 KiB": "mount -t tmpfs -o size=4k tmpfs /dev/shm",
    "memory of 1 MiB": "mount -t tmpfs -o size=1m tmpfs /dev/shm",
    "memory that is read-only": "mount -t tmpfs -o ro tmpfs /dev/shm",
    "no memory folder": "mount -t tmpfs -o mode=0 tmpfs /dev && exec 2>&1",
    "no /proc": "mount -t tmpfs tmpfs /proc",
    "no /sys": "mount -t tmpfs tmpfs /sys",
    "a run folder on a full disk": 'mkdir -p "$RUN" && mount -t tmpfs -o size=4k tmpfs "$RUN"',
    "a run folder that is read-only": 'mkdir -p "$RUN" && mount -t tmpfs -o ro tmpfs "$RUN"',
    "a working folder that is read-only": "mount --bind . . && mount -o remount,ro,bind .",
    "a temporary folder that is full": 'mount -t tmpfs -o size=4k tmpfs "$TMPDIR"',
}
"""What is mounted before, in a mount namespace of its own."""


def can_mount() -> bool:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    tried = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("fault", FAULTS)
def test_the_job_trains_on_or_ends_with_a_reason(fault: str, tmp_path: Path) -> None:
    outcome = run_job(tmp_path / "job", JOBS["ends well"], FailingCall(""), FAULTS[fault])
    said = "standard" not in fault
    assert violations(outcome, has_output=said) == [], outcome.text[-3000:]


@pytest.mark.parametrize("fault", MOUNTS)
def test_so_it_does_whatever_is_mounted(fault: str, tmp_path: Path) -> None:
    if not can_mount():
        pytest.skip("not on this machine: a mount namespace of its own, for which it takes root")
    before = f'export RUN="$PWD/../run"; {MOUNTS[fault]} || exit 99'
    outcome = run_job(
        tmp_path / "job", JOBS["ends well"], FailingCall(""), before, ("unshare", "-m")
    )
    assert outcome.code != 99, outcome.text
    assert violations(outcome) == [], outcome.text[-3000:]
