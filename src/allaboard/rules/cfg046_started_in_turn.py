"""A script starts the members of one job one after the other.

## Why it matters
Each member waits in its init for the others. Without `&` at the end of its line, the shell waits for the
first to end before it starts the second: both wait, for half an hour or longer, and neither log shows
anything wrong.

## What to do
Put `&` after each of them, and `wait` after the last. Or start one script with `torchrun` or `allaboard run
-n 2`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.configuration.config_problems import told
from allaboard.contracts import Rule
from allaboard.facts import (
    Certainty,
    Claim,
    ConfigFacts,
    Origin,
    Problem,
    Stage,
    facts_of,
)


def check(facts: ConfigFacts) -> Iterator[Claim]:
    yield from told(facts.problems, "in_turn", Certainty.LIKELY)


_FIRST = Problem(
    kind="in_turn",
    said="rank 0 has to end before rank 1 is started in line 3, and waits for it to begin",
    observed="python train.py",
    correction="& at the end of that command, and `wait` behind the last one",
    origin=Origin(file="start.sh", line=2, column=8),
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ConfigFacts,
    check=check,
    fires_on={"no &": (facts_of("shell", problems=(_FIRST,)), _FIRST.said)},
    silent_on={"one member": facts_of("shell", rank="0", world_size="2", source="torch_env")},
    since="0.1",
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
