"""Processes that were named and have ended: what is known of them, and which rank one was."""

from __future__ import annotations

import os
from collections.abc import Sequence

from allaboard.diagnosis.live.unprobed_members import absent_ranks
from allaboard.facts import Departed, Exit, Member, Phase, Present, Who
from allaboard.hosts import proc


def find_departed(pids: Sequence[int]) -> tuple[Departed, ...]:
    """Those of them that do not live any more. Of one that nobody has waited for its end is known."""
    departed = []
    for pid in pids:
        stat = proc.read_stat(pid)
        if stat is None:
            departed.append(Departed(pid=pid))
        elif (
            stat.state in "ZX" and proc.count_threads(pid) < 2
        ):  # its first thread may have ended alone
            status = proc.wait_status(pid)
            was_killed = status is not None and os.WIFSIGNALED(status)
            exited = status is not None and os.WIFEXITED(status)
            departed.append(
                Departed(
                    pid=pid,
                    waited_for=False,
                    code=os.waitstatus_to_exitcode(status)
                    if exited and status is not None
                    else None,
                    signal=os.WTERMSIG(status) if was_killed and status is not None else None,
                )
            )
    return tuple(departed)


def members_by_elimination(
    departed: Sequence[Departed], present: Sequence[Present], host: str, now: float, phase: Phase
) -> tuple[Member, ...]:
    """The ended ranks as members, ended ``now`` (s) or before in this phase, where the others were told of
    exactly so many more: the environment of an ended process cannot be read. Who is not there at all may
    have been no rank."""
    zombies = [zombie for zombie in departed if not zombie.waited_for]
    _, missing = absent_ranks(present)
    are_alike = len({(zombie.code, zombie.signal) for zombie in zombies}) == 1
    if (
        not zombies
        or len(zombies) != len(departed)
        or len(missing) != len(zombies)
        or not are_alike
    ):
        return ()
    pid = zombies[0].pid if len(zombies) == 1 else 0  # of several it is not known who was which
    return tuple(
        Member(
            who=Who(index=rank, rank=rank, host=host, pid=pid),
            worker=-1 - rank,
            key=-1 - rank,
            phase=phase,
            exit=Exit(at=now, code=zombies[0].code, signal=zombies[0].signal),
        )
        for rank in missing
    )


def describe_departed(departed: Departed, host: str) -> str:
    """One line of it, for a person."""
    if departed.waited_for:
        return f"pid {departed.pid} of {host}: no such process; it has ended, or was another host's"
    how = f", killed by signal {departed.signal}" if departed.signal is not None else ""
    how = f", exit code {departed.code}" if departed.code is not None else how
    return (
        f"pid {departed.pid} of {host}: has ended{how} (zombie: its parent has not waited for it)"
    )
