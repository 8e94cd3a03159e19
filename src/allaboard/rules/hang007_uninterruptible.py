"""A worker is in uninterruptible sleep in the kernel (state D) while the others wait for it.

## Why it matters
In state D a process waits in the kernel, usually for a disk or a network mount that does not answer. Most
such processes cannot be ended before the I/O returns, not even with SIGKILL. A process that reads from a slow
disk is in this state most of the time too, but wakes up in between; that is not reported.

## What to do
Look at the mount that is named: `df` hangs on it too, and `dmesg` shows servers that do not answer. If no
mount is named, `cat /proc/PID/stack` (as root) shows the file system's functions.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.member_names import command_on_host
from allaboard.analysis.stalls.stalled_members import stalled_members
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member
from allaboard.facts.samples import USER, sample_member, sample_stack, stalled_job, waiting_member

MIN_SLEEP_S = 3.0
"""Seconds of uninterrupted sleep before it is reported."""


def check(view: JobView) -> Iterator[Claim]:
    for candidate in view.alive if view.stalled else stalled_members(view):
        if candidate.os_state == "D" and view.now - candidate.os_state_since >= MIN_SLEEP_S:
            yield _claim(view, candidate)


def _claim(view: JobView, member: Member) -> Claim:
    user_frame = member.stack.user if member.stack is not None else None
    call = member.stack.blocked if member.stack is not None else ""
    proc = f"/proc/{member.who.pid}"
    return Claim(
        summary=f"{member.who.name} is in uninterruptible sleep in the kernel"
        + (f": {call}" if call else "")
        + (f", at {user_frame}" if user_frame is not None else ""),
        who=(member.who,),
        evidence=(
            Evidence(f"state D for {view.now - member.os_state_since:.0f} s", f"{proc}/stat"),
            *((Evidence(call, f"{proc}/syscall"),) if call else ()),
        ),
        fix=command_on_host(view, member, f"cat {proc}/stack")
        + "   # as root, shows the file system that it waits for; then dmesg | tail",
        certainty=Certainty.LIKELY,
        since=member.os_state_since,
    )


_NFS = "read of /data/shard-7 on /data (nfs4 of filer:/data)"
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a worker has been in uninterruptible sleep for 9 seconds": (
            stalled_job(waiting_member(0), sample_member(1, os_state="D", os_state_since=91.0)),
            "worker 1 is in uninterruptible sleep in the kernel",
        ),
        "a worker has been in uninterruptible sleep at an NFS mount that is known": (
            stalled_job(
                waiting_member(0),
                sample_member(
                    1,
                    os_state="D",
                    os_state_since=91.0,
                    stack=msgspec.structs.replace(sample_stack(USER), blocked=_NFS),
                ),
            ),
            f"worker 1 is in uninterruptible sleep in the kernel: {_NFS}, at train.py:41 in train",
        ),
    },
    silent_on={
        "a worker has been in uninterruptible sleep for one second": stalled_job(
            waiting_member(0), sample_member(1, os_state="D", os_state_since=99.0)
        ),
        "the job makes progress although a worker is in uninterruptible sleep": stalled_job(
            waiting_member(0), sample_member(1, os_state="D", os_state_since=91.0), progress_at=99.9
        ),
    },
    passes=True,
    drill=("uninterruptible",),
)
