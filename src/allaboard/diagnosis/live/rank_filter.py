"""Of the processes that were named, those that may be ranks: workers and launchers may be among them."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.diagnosis.logs.non_rank_processes import apart, said
from allaboard.diagnosis.logs.processes import Process
from allaboard.facts import Glimpse, Place, Present
from allaboard.formats.dumps.process_roles import process_role


def ranks_among(people: Sequence[Present]) -> tuple[list[Present], tuple[str, ...]]:
    """Who may be a rank, and what the others are, a line for each kind; all where nobody may."""
    found = [_process(number, one) for number, one in enumerate(people)]
    ranks, beside = apart(found)
    left = {one.number for one in beside}
    if left & {one.number for one in ranks}:
        return list(people), ()
    return [one for number, one in enumerate(people) if number not in left], said(beside)


def _process(number: int, one: Present) -> Process:
    member = one.member
    command = " ".join(one.command)
    what = process_role(command, member.stack.frames if member.stack is not None else ())
    # Without the command: who named processes of two programs knows that they are one job.
    seen = Glimpse(origin=Place(file=""), pid=member.who.pid, stack=member.stack, role=what)
    return Process(number=number, who=member.who, seen=[seen], role=what)
