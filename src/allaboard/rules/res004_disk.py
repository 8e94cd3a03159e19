"""A disk, or /dev/shm, to which the job writes will be full soon, or is full.

allaboard reads every few seconds: /dev/shm, and the file systems of the run folder and of the working folder.
It is reported once half is used, and the use rises in a straight line that reaches the end within five times
the observed time. A rise that has stopped in the last four seconds is not reported, unless nothing is left.

## Why it matters
A checkpoint that does not fit is left incomplete. A full /dev/shm kills DataLoader workers, and all others
that share memory there, with a bus error.

## What to do
See what uses the space: `df -h`, `du -xsh * | sort -h`. Keep fewer checkpoints, and put logs elsewhere. For
/dev/shm, raise the container's `--shm-size`, or use fewer DataLoader workers.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.resources.host_load import is_whole_job_training
from allaboard.analysis.resources.resource_forecast import (
    example_rising_use,
    find_running_out,
    forecast_claim,
    format_amount,
)
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, JobView, Member, Severity, Use

_NAMES = ("/dev/shm", "disk")
"""First words of the readings of file systems."""


FULL_SHARE = 0.999
"""Share of a file system from which hardly a page is left."""


def check(view: JobView) -> Iterator[Claim]:
    for use in view.uses:
        members = tuple(m for m in view.alive if not m.launcher and m.who.host == use.host)
        is_full = use.name.startswith(_NAMES) and 0 < FULL_SHARE * use.limit <= use.value
        if is_full and members and is_whole_job_training(view):
            yield _claim_full(use, members)
    for use, members in find_running_out(view, *_NAMES):
        if use.value >= FULL_SHARE * use.limit:
            continue
        path = use.name.removeprefix("disk ")
        yield forecast_claim(
            use, tuple(m.who for m in members), f"{path} on {use.host} will be full", _command(path)
        )


def _claim_full(use: Use, members: tuple[Member, ...]) -> Claim:
    path = use.name.removeprefix("disk ")
    return Claim(
        summary=f"{path} on {use.host} is full: {format_amount(use, use.value)} of "
        f"{format_amount(use, use.limit)} are used, and writing to it fails",
        who=tuple(m.who for m in members),
        evidence=(Evidence(f"{use.limit - use.value:.0f} bytes are left", use.origin),),
        fix=_command(path),
        severity=Severity.WARNING,
    )


def _command(path: str) -> str:
    return f"df -h {path}; du -xsh {path}/* | sort -h | tail"


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "/dev/shm fills up": (
            example_rising_use("/dev/shm", pid=0),
            "/dev/shm on a will be full in about 30 s: 700.0 MB of 1.0 GB, 10.0 MB more a second",
        ),
        "a disk on which nothing is left": (
            example_rising_use("disk /data", pid=0, value=1000.0, recent=0.0),
            "/data on a is full: 1.0 GB of 1.0 GB are used, and writing to it fails",
        ),
        "a disk fills up": (
            example_rising_use("disk /data", pid=0),
            "/data on a will be full in about 30 s: 700.0 MB of 1.0 GB, 10.0 MB more a second",
        ),
    },
    silent_on={
        "a disk that is nearly full, but does not fill any further": example_rising_use(
            "disk /data", pid=0, value=990.0, rate=0.0
        ),
        "a disk on which checkpoints come and go": example_rising_use("disk /data", pid=0, fit=0.5),
        "a disk to which a long checkpoint has been written": example_rising_use(
            "disk /data", pid=0, recent=0.0
        ),
        "a disk that will be full in hours": example_rising_use("disk /data", pid=0, rate=0.02),
    },
    passes=True,
    unstaged="a drill would have to fill a disk that others use; tests/zoo/test_disk_fills.py mounts one of "
    "its own",
    relations=Relations(
        measured=True, raised_as=r"unable to write to file </torch_\w+>: No space left on device"
    ),
)
