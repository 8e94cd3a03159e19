"""Processes that were named and have ended: what is known of them, and which rank one was."""

from __future__ import annotations

import os
from collections.abc import Sequence

from allaboard.diagnosis.live.unprobed_members import absent_ranks
from allaboard.facts import Departed, Exit, Member, Phase, Present, Who
from allaboard.hosts import proc


def find_departed(pids: Sequence[int]) -> tuple[Departed, ...]:
    """Return those of the processes that no longer live.

    How a process ended is known only while its parent has not waited for it.
    """
    departed = []
    for pid in pids:
        stat = proc.read_stat(pid)
        if stat is None:
            departed.append(Departed(pid=pid))
        # A process whose first thread has ended alone is shown as a zombie, and still runs.
        elif stat.state in "ZX" and proc.count_threads(pid) < 2:
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
    """Return the ended ranks as members, ended ``now`` (s) or before in this phase.

    This is possible if exactly as many ranks are missing as have ended: the environment of an ended process
    cannot be read. A process that has gone completely may have been no rank.
    """
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
            exit=Exit(ended_at=now, code=zombies[0].code, signal=zombies[0].signal),
        )
        for rank in missing
    )


def describe_departed(departed: Departed, host: str) -> str:
    """Return one line on an ended process, for a person."""
    if departed.waited_for:
        return f"pid {departed.pid} of {host}: no such process; it has ended, or was another host's"
    how = f", killed by signal {departed.signal}" if departed.signal is not None else ""
    how = f", exit code {departed.code}" if departed.code is not None else how
    return (
        f"pid {departed.pid} of {host}: has ended{how} (zombie: its parent has not waited for it)"
    )
