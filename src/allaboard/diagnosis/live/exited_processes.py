"""Processes that were named and have ended, or whose programs have: what is known of them.

A thread that goes on, an exit handler or a framework's shutdown keeps a process whose program has ended.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.diagnosis.live.unprobed_members import absent_ranks
from allaboard.diagnosis.readers import python_log
from allaboard.facts import Departed, Exhibit, Exit, Member, Phase, Present, Raised, Stack, Who
from allaboard.hosts import proc
from allaboard.hosts.awaited.output_file import output_file, read_output_tail


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


def final_exceptions(
    stacks: Mapping[int, Stack | None],
    ranks: Mapping[int, int],
    frameworks: Mapping[int, str],
    raised_at: float,
) -> dict[int, Raised]:
    """Return by pid what ended the program of each process that is at its end, as far as that was printed.

    Args:
        stacks: what the main thread of each process does.
        ranks: their ranks; -1 for one that is not known.
        frameworks: what each has loaded; "" for one that is at its start.
        raised_at: until when the exceptions were raised (s).
    """
    files = {pid: output_file(pid) for pid in stacks}
    writers = Counter(files.values())
    found = {}
    for pid, stack in stacks.items():
        if files[pid] is None or not _is_at_its_end(stack, frameworks.get(pid, "")):
            continue
        raised = find_final_exception(
            read_output_tail(pid), ranks.get(pid, -1), is_shared=writers[files[pid]] > 1
        )
        if raised is not None:
            found[pid] = msgspec.structs.replace(raised, raised_at=raised_at)
    return found


def find_final_exception(text: str, rank: int, *, is_shared: bool) -> Raised | None:
    """Return the exception with which the output ends; None if it goes on after it.

    Of an output that several processes share, only what is labelled with this ``rank`` counts.
    """
    testimony = python_log.read_log(Exhibit(name="", data=text.encode()))
    for glimpse in reversed(testimony.glimpses if testimony is not None else ()):
        is_own = (glimpse.rank == rank and rank >= 0) or (glimpse.rank < 0 and not is_shared)
        if is_own and not glimpse.doubt:
            return glimpse.raised
    return None


def _is_at_its_end(stack: Stack | None, framework: str) -> bool:
    """Return True if the interpreter is shutting down, or has no Python left to run: before its framework is
    loaded, that is so at the start, too."""
    if stack is None or not stack.frames:
        return bool(framework)
    return classify_stack(stack) is Spot.LEAVING
