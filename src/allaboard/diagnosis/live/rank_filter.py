"""Selection of the possible ranks among the processes that a user named, which may include workers,
launchers, and servers that the ranks ask."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.analysis.stacks.stack_classifier import is_peer_wait
from allaboard.analysis.stalls.lock_kind import describe_wait
from allaboard.diagnosis.live.waiting_launcher import without_launchers_number
from allaboard.diagnosis.live.worlds import is_complete_world
from allaboard.diagnosis.logs.non_rank_processes import non_rank_lines, separate_ranks
from allaboard.diagnosis.logs.processes import Process
from allaboard.facts import Glimpse, Place, Present
from allaboard.formats.dumps.process_roles import process_role


def filter_ranks(present: Sequence[Present]) -> tuple[list[Present], tuple[str, ...]]:
    """Return the possible ranks, and a line for each kind of other process; all processes if none may be a
    rank."""
    processes = [_process(number, process) for number, process in enumerate(present)]
    ranks, non_ranks = separate_ranks(processes)
    non_rank_numbers = {process.number for process in non_ranks}
    if non_rank_numbers & {process.number for process in ranks}:
        return [without_launchers_number(process) for process in present], ()
    candidates = [p for number, p in enumerate(present) if number not in non_rank_numbers]
    outsiders = _outsiders(candidates)
    return (
        [p for p in candidates if p not in outsiders],
        (*non_rank_lines(non_ranks), *map(_outsider_line, outsiders)),
    )


def _outsiders(candidates: Sequence[Present]) -> list[Present]:
    """Return the processes that are no ranks because all ranks of the only world are others: a server that
    was started from the same shell has inherited the world's variables, but no number."""
    numbered = [p for p in candidates if p.member.who.rank >= 0]
    if any("TF_CONFIG" in p.stated for p in candidates) or not is_complete_world(numbered):
        return []
    return [p for p in candidates if p not in numbered and not is_peer_wait(p.member.stack)]


def _outsider_line(process: Present) -> str:
    stack = process.member.stack
    location = f" at {stack.user}" if stack is not None and stack.user is not None else ""
    return (
        f"pid {process.member.who.pid}: no rank, since all of them are other processes; it is "
        f"{describe_wait(stack)}{location}"
    )


def _process(number: int, present: Present) -> Process:
    member = present.member
    command = " ".join(present.command)
    role_found = process_role(command, member.stack.frames if member.stack is not None else ())
    # Without the command: who named processes of two programs knows that they are one job.
    glimpse = Glimpse(
        origin=Place(file=""), pid=member.who.pid, stack=member.stack, role=role_found
    )
    return Process(number=number, who=member.who, glimpses=[glimpse], role=role_found)
