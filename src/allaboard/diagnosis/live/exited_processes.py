"""Processes that were named and have ended: what is known of them, and which rank one was."""

from __future__ import annotations

import os
from collections.abc import Sequence

from allaboard.diagnosis.live.unprobed_members import absent
from allaboard.facts import Departed, Exit, Member, Phase, Present, Who
from allaboard.hosts import proc


def departed(pids: Sequence[int]) -> tuple[Departed, ...]:
    """Those of them that do not live any more. Of one that nobody has waited for its end is known."""
    found = []
    for pid in pids:
        seen = proc.read_stat(pid)
        if seen is None:
            found.append(Departed(pid=pid))
        elif (
            seen.state in "ZX" and proc.count_threads(pid) < 2
        ):  # its first thread may have ended alone
            status = proc.wait_status(pid)
            killed = status is not None and os.WIFSIGNALED(status)
            left = status is not None and os.WIFEXITED(status)
            found.append(
                Departed(
                    pid=pid,
                    waited_for=False,
                    code=os.waitstatus_to_exitcode(status) if left and status is not None else None,
                    signal=os.WTERMSIG(status) if killed and status is not None else None,
                )
            )
    return tuple(found)


def by_elimination(
    gone: Sequence[Departed], people: Sequence[Present], host: str, now: float, phase: Phase
) -> tuple[Member, ...]:
    """The ended ranks as members, ended ``now`` (s) or before in this phase, where the others were told of
    exactly so many more: the environment of an ended process cannot be read. Who is not there at all may
    have been no rank."""
    ended = [one for one in gone if not one.waited_for]
    _, missing = absent(people)
    alike = len({(one.code, one.signal) for one in ended}) == 1
    if not ended or len(ended) != len(gone) or len(missing) != len(ended) or not alike:
        return ()
    pid = ended[0].pid if len(ended) == 1 else 0  # of several it is not known who was which
    return tuple(
        Member(
            who=Who(index=rank, rank=rank, host=host, pid=pid),
            worker=-1 - rank,
            key=-1 - rank,
            phase=phase,
            exit=Exit(at=now, code=ended[0].code, signal=ended[0].signal),
        )
        for rank in missing
    )


def said(one: Departed, host: str) -> str:
    """One line of it, for a person."""
    if one.waited_for:
        return f"pid {one.pid} of {host}: no such process; it has ended, or was another host's"
    how = f", killed by signal {one.signal}" if one.signal is not None else ""
    how = f", exit code {one.code}" if one.code is not None else how
    return f"pid {one.pid} of {host}: has ended{how} (zombie: its parent has not waited for it)"
