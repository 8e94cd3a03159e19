"""Ranks in dumps, by variables, by arguments of commands and by local variables of functions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from allaboard.facts.configuration.source_variables import variables_of

_RANK_VARIABLES = variables_of("rank", without=("slurm", "flux", "lsf", "pals"))
"""Variables that state a rank. A batch script has SLURM_PROCID=0 whatever its steps do, so a scheduler's
variables state none."""
_VARIABLE = re.compile(
    rf"(?<![\w])(?P<name>{'|'.join(_RANK_VARIABLES)})[\"']?(?:=|: )[\"']?"
    r"(?P<rank>\d{1,7})(?![\w.])"
)
"""Matches a variable as `env` writes it, or in a mapping of Python or JSON."""
_FLAGS = tuple(
    # From the start of a word: --lora-rank is none of them.
    re.compile(rf"(?<!\S)--?(?:{names})[= ](\d{{1,7}})(?!\S)")
    for names in (
        r"(?:global[-_]|world[-_])?rank|process[-_]?(?:id|index)|proc[-_]id",
        r"local[-_]?rank",
        r"(?:node|machine)[-_]?rank",
    )
)
"""Flags that state a rank, the one that says most first."""
_RANK_NAMES = ("rank", "global_rank", "world_rank")
_SPAWN_FILE = re.compile(r"(?:^|/)torch/multiprocessing/spawn\.py$")
_NUMBER = re.compile(r"(\d{1,7})$")


def ranks_in_variables(text: str) -> list[tuple[int, int]]:
    """Return the positions in the text that state a rank, and the ranks; PyTorch's own name goes first."""
    matches = list(_VARIABLE.finditer(text))
    pytorch_matches = [m for m in matches if m["name"] == "RANK"]
    return [(m.start(), int(m["rank"])) for m in pytorch_matches or matches]


def ranks_from_variables(text: str, begins: Sequence[int]) -> list[int]:
    """Return the rank of each process whose text begins at these positions; -1 for none, or several.

    If the variables stand before the first process, they stand before each.
    """
    hints = ranks_in_variables(text) if begins else []
    edges = [0, *begins[1:], len(text)]
    if hints and hints[0][0] < begins[0]:
        edges = [0, *begins]
    ranks = []
    for number in range(len(begins)):
        ranks_here = {
            rank for position, rank in hints if edges[number] <= position < edges[number + 1]
        }
        ranks.append(ranks_here.pop() if len(ranks_here) == 1 else -1)
    return ranks


def rank_from_command(command: str) -> int:
    """Return the rank in the arguments, else the rank on the node, else that of the node; -1 for none.

    The first two are equal in a job on one node, and the last is the rank with one process a node. With
    some scripts ``--rank`` is the node's: then several processes have it.
    """
    matches = (flag.search(command) for flag in _FLAGS)
    return next((int(match[1]) for match in matches if match is not None), -1)


def rank_from_locals(values: Iterable[tuple[str, str, str]]) -> int:
    """Return the rank by variables of functions: file, name, and value as printed.

    It is -1 if none states it, or two state different ones (the number within a group is often called a rank,
    too).
    """
    ranks = {
        int(number[1])
        for file, name, value in values
        if name in _RANK_NAMES or (name == "i" and _SPAWN_FILE.search(file))
        if (number := _NUMBER.match(value)) is not None
    }
    return ranks.pop() if len(ranks) == 1 else -1
