"""Wrapped models of a script of thousands of lines are found in a time that grows with its length."""

from __future__ import annotations

import time

from allaboard.facts import ScriptFacts
from allaboard.formats.python.script_ast import Script
from allaboard.formats.python.wrapped_models import WrappedModels

HEAD = "from torch.nn.parallel import DistributedDataParallel as DDP\nfirst_0 = make()\n"


def seconds_for(count: int) -> float:
    """Return the CPU time (s) for a script in which so many wrapped models come one from another."""
    lines = [f"first_{n} = DDP(change(first_{n - 1}, other_{n}))" for n in range(1, count)]
    script = Script(ScriptFacts(file="large.py", source=HEAD + "\n".join(lines)))
    began = time.process_time()
    WrappedModels(script)
    return time.process_time() - began


def test_the_time_grows_with_the_length() -> None:
    seconds_for(50)
    # The least of some: a collection of garbage is not the script's.
    short, long = (min(seconds_for(count) for _ in range(3)) for count in (400, 1600))
    # Four times as long; with the square of the length it would be sixteen times.
    assert long < 10 * max(short, 0.02), (short, long)
