"""A member is in uninterruptible I/O while the others wait for it.

## Why it matters
State D: the kernel itself waits, usually for a disk or a network mount that does not answer. Not even
SIGKILL ends such a process before the I/O does.

## What to do
Look at the mount: `df` on it hangs too. `cat /proc/PID/stack` (as root) names the file system.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.standing import standing
from allaboard.facts import Certainty, Claim, Evidence, JobView, Stage
from allaboard.facts.samples import member, stalled, waiting

LONG = 3.0
"""Seconds without a break; a busy disk shows D for moments."""


def check(view: JobView) -> Iterator[Claim]:
    for one in view.alive if view.stalled else standing(view):
        if one.os_state == "D" and view.now - one.os_state_since >= LONG:
            place = one.stack.user if one.stack is not None else None
            yield Claim(
                summary=f"{one.who.job} {one.who.index} is in uninterruptible I/O"
                + (f" at {place}" if place is not None else ""),
                who=(one.who,),
                evidence=(
                    Evidence(
                        f"state D for {view.now - one.os_state_since:.0f} s",
                        f"/proc/{one.who.pid}/stat",
                    ),
                ),
                fix=f"cat /proc/{one.who.pid}/stack   # as root: which file system it waits for",
                certainty=Certainty.LIKELY,
                since=one.os_state_since,
            )


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    fires_on={
        "mount does not answer": (
            stalled(waiting(0), member(1, os_state="D", os_state_since=91.0)),
            "worker 1 is in uninterruptible I/O",
        ),
    },
    silent_on={
        "a moment": stalled(waiting(0), member(1, os_state="D", os_state_since=99.0)),
        "the job moves": stalled(
            waiting(0), member(1, os_state="D", os_state_since=91.0), progress_at=99.9
        ),
    },
    since="0.1",
    passes=True,
    unstaged="needs a mount whose server can be stopped (a FUSE or NFS server inside the test)",
)
