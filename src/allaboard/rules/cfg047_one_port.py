"""Two launchers that a script starts side by side listen on one port.

## Why it matters
Each torchrun opens a store for its workers. The second one on a host finds the port taken (`EADDRINUSE`)
and ends, or its workers join the first one's. Older torchruns take port 29500 if none is given, and so does
the second one, whatever GPUs each of them has.

## What to do
Give each its own `--master-port`, or start each with `--standalone`, which takes a free port.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import (
    Certainty,
    Claim,
    ConfigFacts,
    Evidence,
    Origin,
    Problem,
    Severity,
    Stage,
    facts_of,
)


def check(facts: ConfigFacts) -> Iterator[Claim]:
    for problem in facts.problems:
        if problem.kind == "one_port":
            given = bool(problem.origin.flag)
            yield Claim(
                summary=problem.said,
                evidence=(Evidence(problem.observed, str(problem.origin)),),
                fix=problem.correction,
                # Without a port given it depends on the version.
                severity=Severity.ERROR if given else Severity.WARNING,
                certainty=Certainty.LIKELY,
                where=problem.origin.place,
            )


_GIVEN = Problem(
    kind="one_port",
    said="torchrun listens on port 29501, on which the torchrun of line 2 listens at the same time",
    observed="--master-port 29501",
    correction="torchrun --master-port=29502 …",
    origin=Origin(flag="--master-port", file="start.sh", line=3, column=40),
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ConfigFacts,
    check=check,
    fires_on={"given twice": (facts_of("shell", problems=(_GIVEN,)), _GIVEN.said)},
    silent_on={"one launcher": facts_of("shell", master_port="29501", source="torchrun")},
    since="0.1",
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
