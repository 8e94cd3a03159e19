"""`Work.wait` is hooked while a program may wait for work of its own, and else not."""

import pytest

from probed import Program

PROGRAM = """
import os
from _allaboard_probe import member, hooks
from _allaboard_probe.adapters._torch import point_to_point as messages
from _allaboard_probe.adapters._torch.work_wait import SETTLED_STEPS, Waits
class Work:
    def wait(self): return "done"
class Own(Work): pass
plain = Work.wait
waits = Waits(Work)
within = hooks.operation("all_reduce", lambda: Own().wait())
def trained(steps, does=within):
    for _ in range(steps):
        does()
        member.here.box.step()
def told(): # the name that a wait leaves in the box
    slot = member.here.box.slot()
    before = slot.count
    assert Own().wait() == "done"
    return slot.count - before
{0}
"""


@pytest.mark.parametrize(
    "does",
    [
        "assert told() == 1 and not waits.off",
        "[within() for _ in range(9 * SETTLED_STEPS)]; assert Work.wait is not plain and told() == 1",
        "trained(SETTLED_STEPS); assert Work.wait is not plain and told() == 1",
        "trained(SETTLED_STEPS + 1); assert waits.off and Work.wait is plain and told() == 0",
        "told(); trained(3 * SETTLED_STEPS); assert not waits.off and told() == 1",
        "trained(3 * SETTLED_STEPS, lambda: (within(), told())); assert not waits.off and told() == 1",
        "trained(SETTLED_STEPS + 1); waits.begun([]); assert waits.off",
        "trained(SETTLED_STEPS + 1); waits.begun(Own()); assert not waits.off and told() == 1",
        "trained(SETTLED_STEPS + 1); "
        "send = messages.begun('isend', waits.entered(lambda *a: Own())); send(1, 2); assert told() == 1",
    ],
)
def test_the_wait_is_hooked_where_the_program_waits(program: Program, does: str) -> None:
    ended = program.run(PROGRAM.format(does))
    assert ended.code == 0, ended.err
