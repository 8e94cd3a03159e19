"""A message between two ranks: what is told of it while it lasts."""

from __future__ import annotations

import pytest

from probed import Program

CALL = """
import os
from _allaboard_probe import member, hooks
from _allaboard_probe.adapters._torch.point_to_point import BLOCKING
call = hooks.waiting("{0}", lambda *args, **named: os._exit(0), BLOCKING["{0}"])
call({1})
"""


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("recv", "None, 1, tag=127", "recv from rank 1, tag 127"),
        ("recv", "None", "recv"),
        ("send", "None, dst=2", "send to rank 2"),
        ("send", "None, group_dst=1, tag=5", "send to rank 1, tag 5"),
        ("send", "None, object(), None, 'a'", "send"),
        ("recv", "None, of_a_later_torch=1", "recv"),
    ],
)
def test_it_names_the_other_side(program: Program, name: str, arguments: str, told: str) -> None:
    ended = program.run(CALL.format(name, arguments))
    op = program.box(ended.pid).read_snapshot().op
    assert op is not None and op.name == told


THREAD = """
import threading
from _allaboard_probe import member, hooks
from _allaboard_probe.adapters._torch.point_to_point import BLOCKING
send = hooks.waiting("send", lambda *args, **named: None, BLOCKING["send"])
def quiet():
    raise ValueError("before any")
def sends():
    send(None, 0, tag=7)
    raise KeyError("loss")
for run in {0}:
    one = threading.Thread(target=run)
    one.start()
    one.join()
"""


@pytest.mark.parametrize(
    ("threads", "called"),
    [
        ("[sends]", "send to rank 0, tag 7"),
        ("[quiet, sends]", "send to rank 0, tag 7"),
        ("[sends, quiet]", "send to rank 0, tag 7"),  # what did less takes no other's place
        ("[quiet]", ""),
    ],
)
def test_what_a_thread_did_last_before_it_raised(
    program: Program, threads: str, called: str
) -> None:
    ended = program.run(THREAD.format(threads))
    notes = program.read(ended.pid).notes
    assert notes["thread called"] == called, ended.err


UNDER_WAY = """
import gc, os
from _allaboard_probe import member, hooks
from _allaboard_probe.adapters._torch import point_to_point as messages
class Work:
    def __init__(self, *args, **named): pass
    def wait(self): {0}
begin = messages.begun("irecv", Work)
Work.wait = hooks.waiting("Work.wait", Work.wait, messages.awaited)
{1}
"""


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("begin(None, 1, tag=7).wait()", "Work.wait for irecv from rank 1, tag 7"),
        (
            "one = begin(None, 1); two = begin(None, 2); one.wait()",
            "Work.wait for irecv from rank 1",
        ),
        ("begin(None, group_src=3).wait()", "Work.wait for irecv from rank 3"),
        ("begin(None).wait()", "Work.wait for irecv"),
        ("begin(None, 1); Work().wait()", "Work.wait"),
        ("hooks.waiting('recv', lambda: begin(None, 1))(); Work().wait()", "Work.wait"),
        (
            "[begin(None, n) for n in range(3000)]; begin(None, 9).wait()",
            "Work.wait for irecv from rank 9",
        ),
        ("all = [begin(None, n) for n in range(3000)]; all[0].wait()", "Work.wait"),
    ],
)
def test_a_wait_names_whose_message_it_is_for(program: Program, does: str, told: str) -> None:
    ended = program.run(UNDER_WAY.format("os._exit(0)", does))
    op = program.box(ended.pid).read_snapshot().op
    assert op is not None and op.name == told


def test_a_message_that_is_done_is_not_kept(program: Program) -> None:
    does = "for n in range(5000): begin(None, n).wait()\nprint(len(messages._messages))"
    ended = program.run(UNDER_WAY.format("pass", does))
    assert 0 < int(ended.out) <= 1024, ended.err
