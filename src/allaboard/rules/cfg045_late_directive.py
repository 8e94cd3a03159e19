"""An `#SBATCH` line stands below the first command of its script.

## Why it matters
sbatch reads its options up to the first line that is not a comment, and no further. Anything below a `set
-e`, a `module load` or an `export` is only a comment to it: the job gets one node and one task, while
torchrun waits for two.

## What to do
Move all `#SBATCH` lines to the top, right below `#!/bin/bash`. To switch one off on purpose, write
`##SBATCH`.
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

_SIZES = frozenset(
    (
        "--nodes", "-N", "--ntasks", "-n", "--ntasks-per-node", "--gres", "--gpus", "-G",
        "--gpus-per-node", "--gpus-per-task", "--nodelist", "-w", "--array", "-a",
    )
)  # fmt: skip
"""Options by which the training has another number of processes, or of devices."""


def check(facts: ConfigFacts) -> Iterator[Claim]:
    for problem in facts.problems:
        if problem.kind == "late":
            yield Claim(
                summary=problem.said,
                evidence=(Evidence(problem.observed, str(problem.origin)),),
                fix=problem.correction,
                severity=Severity.ERROR if problem.origin.flag in _SIZES else Severity.WARNING,
                certainty=Certainty.LIKELY,
                where=problem.origin.place,
            )


def _below(option: str) -> Problem:
    return Problem(
        kind="late",
        said=f"#SBATCH {option} stands below the first command, where sbatch does not read it",
        observed="line 2 is a command: set -e",
        correction=f"#SBATCH {option}   # above line 2",
        origin=Origin(flag=option.partition("=")[0], file="job.sbatch", line=3, column=9),
    )


RULE = Rule(
    stage=Stage.CONFIG,
    reads=ConfigFacts,
    check=check,
    fires_on={
        "the nodes": (
            facts_of("shell", problems=(_below("--nodes=2"),)),
            "#SBATCH --nodes=2 stands below the first command, where sbatch does not read it",
        ),
        "the output": (
            facts_of("shell", problems=(_below("--output=log"),)),
            "#SBATCH --output=log stands below the first command, where sbatch does not read it",
        ),
    },
    silent_on={"above": facts_of("shell", nnodes="2", source="slurm")},
    since="0.1",
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
