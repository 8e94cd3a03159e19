"""Problems that the reader of shell scripts found: each rule reports one kind of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from allaboard.analysis.configuration.config_problems import problem_claims
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Origin, Problem, Severity
from allaboard.facts.configuration.config_facts import sample_config_facts

_SIZES = frozenset(
    (
        "--nodes", "-N", "--ntasks", "-n", "--ntasks-per-node", "--gres", "--gpus", "-G",
        "--gpus-per-node", "--gpus-per-task", "--nodelist", "-w", "--array", "-a",
    )
)  # fmt: skip
"""Options that change the number of processes or devices of the training."""


def _rule(
    page: str,
    examples: Mapping[str, Problem],
    silent_on: Mapping[str, ConfigFacts],
    is_warning: Callable[[Problem], bool] = lambda problem: False,
) -> Rule[ConfigFacts]:
    """Return the rule that reports problems of the kind of these examples.

    What the reader found is likely, not certain: a script may do more than its text shows.
    """
    (kind,) = {example.kind for example in examples.values()}

    def check(facts: ConfigFacts) -> Iterator[Claim]:
        for problem in facts.problems:
            for claim in problem_claims((problem,), kind, Certainty.LIKELY):
                if is_warning(problem):
                    claim = msgspec.structs.replace(claim, severity=Severity.WARNING)
                yield claim

    return Rule(
        page=page,
        reads=ConfigFacts,
        check=check,
        fires_on={
            case: (sample_config_facts("shell", problems=(example,)), example.message)
            for case, example in examples.items()
        },
        silent_on=silent_on,
    )


def _below(option: str) -> Problem:
    return Problem(
        kind="late",
        message=f"#SBATCH {option} stands below the first command, where sbatch does not read it",
        observed="line 2 is a command: set -e",
        correction=f"#SBATCH {option}   # above line 2",
        origin=Origin(flag=option.partition("=")[0], file="job.sbatch", line=3, column=9),
    )


RULES = {
    "cfg044_torn_command": _rule(
        page="""A launch command ends before its last line, or where its writer did not mean it to.

## Why it matters
A backslash joins two lines only as the very last character. With a blank after it, with a comment among the
lines, or without it, the command ends there. torchrun starts with half of its options, one node instead of
four. The rest becomes a command that does not exist (`--nproc-per-node: command not found`), about which a
script without `set -e` prints one line and goes on.

In `ssh HOST cd DIR; torchrun …`, the shell here ends ssh's command at the `;`: each torchrun starts on this
host, and the others are only logged into.

## What to do
Remove the blank, move the comment above the command, or add the backslash. Put the whole command of ssh in
quotes.
""",
        examples={
            "a blank after the backslash at the end of a line": Problem(
                kind="torn",
                message="the command of torchrun ends here: there is a blank after the backslash, "
                "and the options after it are lost",
                observed="there is a blank after the backslash",
                correction="sed -i 's/\\\\[[:blank:]]*$/\\\\/' run.sh",
                origin=Origin(file="run.sh", line=3, column=20),
            ),
            "the `;` behind `cd` ends the command of ssh": Problem(
                kind="torn",
                message="the command of ssh ends at the ;: torchrun behind it runs on this host, each time",
                observed="ssh $host cd /work;",
                correction="ssh HOST 'cd … && torchrun …'",
                origin=Origin(file="run.sh", line=3, column=3),
            ),
        },
        silent_on={
            "a launch command that is not interrupted": sample_config_facts(
                "shell", nnodes="2", source="torchrun"
            )
        },
    ),
    "cfg045_late_directive": _rule(
        page="""An `#SBATCH` line is below the first command, takes a variable's number, or has small letters.

## Why it matters
sbatch reads its options up to the first line that is not a comment, and no further. Anything below a `set
-e`, a `module load` or an `export` is only a comment to it: the job gets one node and one task, while
torchrun waits for two. No shell reads these lines: `--nodes=$NODES` is no number to sbatch. So it is with
the lines of `#PBS` and `#BSUB`. `#sbatch` in small letters is a comment like any other.

## What to do
Move all `#SBATCH` lines to the top, right below `#!/bin/bash`. To switch one off on purpose, write
`##SBATCH`. Give what changes from job to job on the command line: `sbatch --nodes=$NODES job.sbatch`.
""",
        examples={
            "`#SBATCH --nodes` below the first command": _below("--nodes=2"),
            "`#SBATCH --output` below the first command": _below("--output=log"),
            "`#sbatch` in small letters": Problem(
                kind="late",
                message="#sbatch is a comment to sbatch, which reads #SBATCH in capitals alone",
                observed="#sbatch --nodes=2",
                correction="#SBATCH --nodes=2",
                origin=Origin(flag="--nodes", file="job.sbatch", line=2, column=1),
            ),
            "`#SBATCH --nodes` takes its number from a variable": Problem(
                kind="late",
                message="sbatch reads $NODES in this line as text: no shell expands it",
                observed="#SBATCH --nodes=$NODES",
                correction="a number here, or on the command line: sbatch … job.sbatch",
                origin=Origin(flag="--nodes", file="job.sbatch", line=3, column=17),
            ),
        },
        silent_on={
            "all `#SBATCH` lines above the first command": sample_config_facts(
                "shell", nnodes="2", source="slurm"
            )
        },
        is_warning=lambda problem: problem.origin.flag not in _SIZES,
    ),
    "cfg046_started_in_turn": _rule(
        page="""A script starts the members of one job one after the other.

## Why it matters
Each member waits in its init for the others. Without `&` at the end of its line, the shell waits for the
first to end before it starts the second: both wait, for half an hour or longer, and neither log shows
anything wrong.

## What to do
Put `&` after each of them, and `wait` after the last. Or start one script with `torchrun` or `allaboard run
-n 2`.
""",
        examples={
            "rank 0 is started without `&` before rank 1": Problem(
                kind="in_turn",
                message="rank 0 has to end before rank 1 is started in line 3, and waits for it to begin",
                observed="python train.py",
                correction="& at the end of that command, and `wait` behind the last one",
                origin=Origin(file="start.sh", line=2, column=8),
            )
        },
        silent_on={
            "a script that starts a single rank": sample_config_facts(
                "shell", rank="0", world_size="2", source="torch_env"
            )
        },
    ),
    "cfg047_one_port": _rule(
        page="""Two launchers that a script starts side by side listen on one port.

## Why it matters
Each torchrun opens a store for its workers. The second one on a host finds the port taken (`EADDRINUSE`)
and ends, or its workers join the first one's. Older torchruns take port 29500 if none is given, and so does
the second one, whatever GPUs each of them has.

## What to do
Give each its own `--master-port`, or start each with `--standalone`, which takes a free port.
""",
        examples={
            "two torchruns with the same `--master-port`": Problem(
                kind="one_port",
                message="torchrun listens on port 29501, on which the torchrun of line 2 listens "
                "at the same time",
                observed="--master-port 29501",
                correction="torchrun --master-port=29502 …",
                origin=Origin(flag="--master-port", file="start.sh", line=3, column=40),
            )
        },
        silent_on={
            "a script that starts a single torchrun": sample_config_facts(
                "shell", master_port="29501", source="torchrun"
            )
        },
        # Without a port given, it depends on the version of torchrun.
        is_warning=lambda problem: not problem.origin.flag,
    ),
}
