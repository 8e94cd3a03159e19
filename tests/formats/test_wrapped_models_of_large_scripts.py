"""Wrapped models of a script of thousands of lines are found in a time that grows with its length."""

from __future__ import annotations

import time

from allaboard.facts import ScriptFacts
from allaboard.formats.python.script_ast import Script
from allaboard.formats.python.wrapped_models import WrappedModels
from cost_growth import assert_growth

HEAD = "from torch.nn.parallel import DistributedDataParallel as DDP\nfirst_0 = make()\n"


def seconds_for(count: int) -> float:
    """Return the CPU time (s) for a script in which so many wrapped models come one from another."""
    lines = [f"first_{n} = DDP(change(first_{n - 1}, other_{n}))" for n in range(1, count)]
    script = Script(ScriptFacts(file="large.py", source=HEAD + "\n".join(lines)))
    began = time.process_time()
    WrappedModels(script)
    return time.process_time() - began


def test_the_time_grows_with_the_length() -> None:
    # Eight times as long; with the square of the length it would be 64 times.
    assert_growth(seconds_for, 400, 3200, at_most=16)
