"""A launch command ends before its last line.

## Why it matters
A backslash joins two lines only as the very last character. With a blank after it, with a comment among the
lines, or without it, the command ends there. torchrun starts with half of its options, one node instead of
four. The rest becomes a command that does not exist (`--nproc-per-node: command not found`), about which a
script without `set -e` prints one line and goes on.

## What to do
Remove the blank, move the comment above the command, or add the backslash.
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
    yield from told(facts.problems, "torn", Certainty.LIKELY)


_BLANK = Problem(
    kind="torn",
    said="the command of torchrun ends here: there is a blank after the backslash, and the options after "
    "it are lost",
    observed="there is a blank after the backslash",
    correction="sed -i 's/\\\\[[:blank:]]*$/\\\\/' run.sh",
    origin=Origin(file="run.sh", line=3, column=20),
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ConfigFacts,
    check=check,
    fires_on={"a blank": (facts_of("shell", problems=(_BLANK,)), _BLANK.said)},
    silent_on={"whole": facts_of("shell", nnodes="2", source="torchrun")},
    since="0.1",
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
