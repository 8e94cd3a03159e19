"""Selection of the possible ranks among the processes that a user named, which may include workers and
launchers."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.diagnosis.live.waiting_launcher import without_launchers_number
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
    return [
        process for number, process in enumerate(present) if number not in non_rank_numbers
    ], non_rank_lines(non_ranks)


def _process(number: int, present: Present) -> Process:
    member = present.member
    command = " ".join(present.command)
    role_found = process_role(command, member.stack.frames if member.stack is not None else ())
    # Without the command: who named processes of two programs knows that they are one job.
    glimpse = Glimpse(
        origin=Place(file=""), pid=member.who.pid, stack=member.stack, role=role_found
    )
    return Process(number=number, who=member.who, glimpses=[glimpse], role=role_found)
