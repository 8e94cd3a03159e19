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
