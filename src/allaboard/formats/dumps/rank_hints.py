"""Ranks as dumps tell them besides: by variables, by arguments of commands and of functions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from allaboard.facts.configuration.source_variables import variables_of

_RANKS = variables_of("rank", without=("slurm", "flux", "lsf", "pals"))
"""A batch script has SLURM_PROCID=0, whatever its steps do: what a scheduler counts says no rank in a dump."""
_VARIABLE = re.compile(
    rf"(?<![\w])(?P<name>{'|'.join(_RANKS)})[\"']?(?:=|: )[\"']?"
    r"(?P<rank>\d{1,7})(?![\w.])"
)
"""As `env` writes it, or a mapping of Python or JSON."""
_FLAG = re.compile(r"--?(?:global[-_])?rank[= ](\d{1,7})(?!\S)")
_LOCAL = re.compile(r"--?local[-_]rank[= ](\d{1,7})(?!\S)")
_NAMES = ("rank", "global_rank", "world_rank")
_SPAWNED = re.compile(r"(?:^|/)torch/multiprocessing/spawn\.py$")
_NUMBER = re.compile(r"(\d{1,7})$")


def ranks_in_variables(text: str) -> list[tuple[int, int]]:
    """Where the rank is told in the text, and which; of several names PyTorch's own alone."""
    found = list(_VARIABLE.finditer(text))
    own = [m for m in found if m["name"] == "RANK"]
    return [(m.start(), int(m["rank"])) for m in own or found]


def ranks_from_variables(text: str, begins: Sequence[int]) -> list[int]:
    """The rank of each process that is told of from one of these places on, -1 for none, or where there are
    several. Who writes the variables before the first one writes them before each."""
    found = ranks_in_variables(text) if begins else []
    edges = [0, *begins[1:], len(text)]
    if found and found[0][0] < begins[0]:
        edges = [0, *begins]
    ranks = []
    for number in range(len(begins)):
        inside = {rank for at, rank in found if edges[number] <= at < edges[number + 1]}
        ranks.append(inside.pop() if len(inside) == 1 else -1)
    return ranks


def rank_from_command(command: str) -> int:
    """The rank in the arguments, -1 for none; else the number on its node, which is the same in a job on one.
    Of some scripts ``--rank`` is the node's: then several processes have it."""
    found = _FLAG.search(command) or _LOCAL.search(command)
    return int(found[1]) if found is not None else -1


def rank_from_locals(values: Iterable[tuple[str, str, str]]) -> int:
    """By the variables of functions: file, name, and value as it is printed. -1 where none tells it, or two
    tell different ones (the number within a group is often called a rank, too)."""
    found = {
        int(number[1])
        for file, name, value in values
        if name in _NAMES or (name == "i" and _SPAWNED.search(file))
        if (number := _NUMBER.match(value)) is not None
    }
    return found.pop() if len(found) == 1 else -1
