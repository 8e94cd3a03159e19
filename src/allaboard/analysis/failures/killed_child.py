"""Processes that a member started with multiprocessing and that failed, or that a signal killed.

What such a process should have delivered never comes. A Pool silently starts another process in its place.
"""

from __future__ import annotations

from allaboard.facts import Evidence, Member
from allaboard.facts.signal_name import signal_name

KILLED_CHILD_NOTE = "process killed"
"""Note of the probe about the last killed process: "PID SIGNAL STEP"."""

FAILED_PROCESS_NOTE = "process failed"
"""Note of the probe about a process of multiprocessing that failed: "PID CODE", or "" for none."""

PRINTED_FAILURE_NOTE = "process printed failure"
"""Note about such a process of a program without a probe, from its output: "Process-2: KeyError: 'x'"."""


def noted_failure(member: Member) -> tuple[int, int] | None:
    """Return the pid and exit code of a process that the member had waited for and that had failed; None if
    none had, or the member has read its exit code or started another one since."""
    fields = member.notes.get(FAILED_PROCESS_NOTE, "").split()
    if len(fields) != 2 or not all(f.isdecimal() for f in fields):
        return None
    return int(fields[0]), int(fields[1])


def killed_child_evidence(member: Member) -> tuple[Evidence, ...]:
    """Return the last such process that was killed since the member's last step; () if none was."""
    fields = member.notes.get(KILLED_CHILD_NOTE, "").split()
    # A child that was killed before the member's last step did not hold that step up.
    if len(fields) != 3 or not all(f.isdecimal() for f in fields) or int(fields[2]) != member.step:
        return ()
    return (
        Evidence(
            f"its process {fields[0]} was killed by {signal_name(int(fields[1]))}", "wait status"
        ),
    )
