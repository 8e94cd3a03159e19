"""A message between two ranks: what is told of it while it lasts."""

from __future__ import annotations

import pytest

from probed import Program

CALL = """
import os
from _allaboard_probe import member
from _allaboard_probe.adapters.torch import BETWEEN_TWO
call = member.waiting("{0}", lambda *args, **named: os._exit(0), BETWEEN_TWO["{0}"])
call({1})
"""


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("recv", "None, 1, tag=127", "recv from rank 1, tag 127"),
        ("recv", "None", "recv"),
        ("send", "None, dst=2", "send to rank 2"),
        ("send", "None, group_dst=1, tag=5", "send, tag 5"),
        ("send", "None, object(), None, 'a'", "send"),
        ("recv", "None, of_a_later_torch=1", "recv"),
    ],
)
def test_it_names_the_other_side(program: Program, name: str, arguments: str, told: str) -> None:
    ended = program.run(CALL.format(name, arguments))
    op = program.box(ended.pid).read().op
    assert op is not None and op.name == told


THREAD = """
import threading
from _allaboard_probe import member
from _allaboard_probe.adapters.torch import BETWEEN_TWO
send = member.waiting("send", lambda *args, **named: None, BETWEEN_TWO["send"])
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
    ("threads", "called"), [("[sends]", "send to rank 0, tag 7"), ("[sends, quiet]", "")]
)
def test_what_a_thread_did_last_before_it_raised(
    program: Program, threads: str, called: str
) -> None:
    ended = program.run(THREAD.format(threads))
    notes = program.read(ended.pid).notes
    assert notes["thread called"] == called, ended.err
