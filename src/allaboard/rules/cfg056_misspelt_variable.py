"""A batch script reads a variable that Slurm does not set, and whose name is almost one of Slurm's.

## Why it matters
A variable that nobody sets is empty, and no shell says so without `set -u`. `$SLURM_JOB_NODELIS` gives no
host for MASTER_ADDR, `$SLURM_NODE_ID` no number for `--node_rank`, and `$SLURM_NUM_NODES` no count: the
launcher takes the next option for the value, or the ranks look for their meeting place at no address.

## What to do
Write the name that Slurm sets: `srun env | grep SLURM_` lists them. A variable that the script sets itself,
or that has a default, is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.configuration.config_problems import problem_claims
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Origin, Problem
from allaboard.facts.configuration.config_facts import sample_config_facts


def check(facts: ConfigFacts) -> Iterator[Claim]:
    yield from problem_claims(facts.problems, "misspelt", Certainty.LIKELY)


_PROBLEM = Problem(
    kind="misspelt",
    message="Slurm sets no SLURM_NODE_ID: it is empty here; the variable is SLURM_NODEID",
    observed="torchrun --node_rank $SLURM_NODE_ID train.py",
    correction="$SLURM_NODEID",
    origin=Origin(variable="SLURM_NODE_ID", file="job.sbatch", line=7, column=22),
)

RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "the number of the node is read from SLURM_NODE_ID": (
            sample_config_facts("shell", problems=(_PROBLEM,)),
            _PROBLEM.message,
        )
    },
    silent_on={"a script that reads what Slurm sets": sample_config_facts("shell")},
)
