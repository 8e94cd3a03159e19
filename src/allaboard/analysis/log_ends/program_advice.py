"""What to type about an error of a program that starts or places processes, by its own words. Pure.

The tables are beside this file. They hold what an operator of that program would look at; the cause itself is
not known from the words alone, or a row of the known messages would say it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from allaboard.analysis.log_ends.cluster_advice import CLUSTER_ADVICE
from allaboard.analysis.log_ends.mpi_advice import MPI_ADVICE
from allaboard.analysis.log_ends.slurm_advice import SLURM_ADVICE

MAX_TEXT_CHARS = 3000
"""Characters of a message that are read."""


class ProgramAdvice(NamedTuple):
    """One kind of error of one program."""

    pattern: re.Pattern[str]
    """Matches its words; groups are names that the message gives."""
    advice: str
    """What to type, with the groups in braces."""
    names: tuple[tuple[str, str], ...]
    """What stands for a group that the message does not give."""


def _row(pattern: str, advice: str) -> ProgramAdvice:
    compiled = re.compile(pattern)
    return ProgramAdvice(compiled, advice, tuple((n, n.upper()) for n in compiled.groupindex))


TABLE = tuple(_row(*row) for row in (*SLURM_ADVICE, *MPI_ADVICE, *CLUSTER_ADVICE))
"""All rows; the first that matches counts."""


def program_advice(message: str) -> str:
    """Return what to do about the error of a launcher, a batch system or an orchestrator; "" for others."""
    text = message[:MAX_TEXT_CHARS]
    for row in TABLE:
        if (match := row.pattern.search(text)) is not None:
            named_values = {name: value for name, value in match.groupdict().items() if value}
            return row.advice.format(**{**dict(row.names), **named_values})
    return ""
