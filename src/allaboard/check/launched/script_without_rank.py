"""A Python script that takes its rank from the variable RANK, under a launcher that does not set it.

Open MPI numbers its processes by OMPI_COMM_WORLD_RANK [mpirun(1)], Hydra by PMI_RANK, Slurm by SLURM_PROCID
[srun(1)]; torchrun sets RANK.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.check.launched.named_files import LaunchedFiles
from allaboard.configuration.slurm_steps.started_step import StartedStep
from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.facts import Material, Problem, Value
from allaboard.facts.configuration.script import LaunchDemands
from allaboard.formats.cli_flags import find_flags, words_after_program
from allaboard.formats.python_commands import PYTHON_PROGRAM

_PROGRAMS = ("mpirun", "mpiexec", "prterun", "orterun", "mpiexec.hydra")
_COUNT = ("np", "n", "c")
_SETS_RANK = re.compile(r"\bRANK\b(?!_)")
_OPEN_MPI = (
    "RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE "
    "LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK"
)
_SLURM = "RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID"


def without_rank_by_mpirun(material: Material, files: LaunchedFiles) -> Iterator[Problem]:
    """Yield a problem for the first command of an MPI launcher whose processes do not learn their rank."""
    if _SETS_RANK.search(material.text):
        return
    for command in material.commands:
        arguments = words_after_program(command, _PROGRAMS)
        if arguments is None:
            continue
        flags = find_flags(arguments, frozenset((*_COUNT, "x")), frozenset())
        count = next((flags.values[n] for n in _COUNT if n in flags.values), None)
        program = next((w for w in arguments if PYTHON_PROGRAM.match(w.text)), None)
        demands = files.demands_of(command)
        if count is None or (count.integer or 0) < 2 or program is None or demands is None:
            continue
        if demands.rank_variable is None or demands.spawn_count is not None:
            continue
        launcher = next(w.text for w in command if w.text.rpartition("/")[2] in _PROGRAMS)
        yield _problem(program, demands, launcher.rpartition("/")[2], count.text, _OPEN_MPI)
        return


def without_rank_by_srun(
    step: StartedStep, demands: LaunchDemands, material: Material
) -> Problem | None:
    """Return a problem if the tasks of a step do not learn their rank."""
    tasks, words = step.request.total_tasks, step.flags.program_words
    if (
        demands.rank_variable is None
        or demands.spawn_count is not None
        or tasks is None
        or tasks < 2
    ):
        return None
    if _SETS_RANK.search(material.text) or not words or not PYTHON_PROGRAM.match(words[0].text):
        return None
    return _problem(words[0], demands, "srun", str(tasks), _SLURM)


def _problem(
    program: Value, demands: LaunchDemands, launcher: str, count: str, variables: str
) -> Problem:
    taken, file = demands.rank_variable, demands.file.rpartition("/")[2]
    assert taken is not None
    return launch_problem(
        program,
        message=f"{launcher} starts {count} processes and sets no RANK, from which {file} takes its rank: "
        "none of them knows which one it is",
        correction=f"{launcher} … bash -c '{variables} exec {program.text} {file} …'",
        observed=f"{taken.text} [{taken.origin}]",
    )
