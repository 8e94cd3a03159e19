"""The ``#SBATCH`` lines of a script: options of sbatch(1) in comments. They are read without the shell's own
words, which take longer to load.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.facts import Origin, Value

_PARTED = r"\s*#SBATCH\s+(?:hetjob|packjob)\b"
_GROUP = r"--(?:het|pack)-group[= ]([0-9]+)[^\n]*"
_TRAINS = r"\b(?:torchrun|python3?|accelerate)\b"


def keep_training_component(text: str) -> str:
    """The script with the ``#SBATCH`` lines of that component alone in which the training runs, where the
    job is heterogeneous (sbatch's ``hetjob`` lines part its components, srun's ``--het-group`` names one)."""
    lines = text.split("\n")
    separators = [n for n, line in enumerate(lines) if re.match(_PARTED, line)]
    if not separators:
        return text
    joined = text.replace("\\\n", "  ")
    groups = [m[1] for m in re.finditer(_GROUP, joined) if re.search(_TRAINS, m[0])]
    component = int(groups[-1][:3]) if groups else 0
    bounds = [-1, *separators, len(lines)]
    begin, end = bounds[component : component + 2] if component + 1 < len(bounds) else (-1, -1)
    for number, line in enumerate(lines):
        if line.lstrip().startswith("#SBATCH") and not begin < number < end:
            lines[number] = "#"
    return "\n".join(lines)


def read_batch_lines(text: str, file: str, mark: str = "#SBATCH") -> Iterator[tuple[str, Value]]:
    """Options of ``#SBATCH`` lines as (long or short option, value).

    The form is that of sbatch(1): ``--name=value``, ``--name value``, ``-N 2``, ``-N2``; the
    lines count only before the first command.
    """
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped.startswith("#") and stripped:
            return
        if not stripped.startswith(mark):
            continue
        tokens = stripped[len(mark) :].split("#")[0].split()
        while tokens:
            option = tokens.pop(0)
            if not option.startswith("-"):
                continue
            name, equals, value = option.partition("=")
            if not name.startswith("--") and len(name) > 2:
                name, value, equals = name[:2], name[2:], "="
            if not equals and tokens and not tokens[0].startswith("-"):
                value = tokens.pop(0)
            column = line.find(option) + 1
            yield name, Value(value, Origin(flag=name, file=file, line=number, column=column))
