"""The ``#SBATCH`` lines of a script: options of sbatch(1) in comments.

This module does not use the shell reader, which takes longer to import.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.facts import Origin, Value

_PARTED = r"\s*#SBATCH\s+(?:hetjob|packjob)\b"
_GROUP = r"--(?:het|pack)-group[= ]([0-9]+)[^\n]*"
_TRAINS = r"\b(?:torchrun|python3?|accelerate)\b"


def keep_training_component(text: str) -> str:
    """Return the script with the ``#SBATCH`` lines of the component that runs the training, and no
    others.

    In a heterogeneous job, sbatch's ``hetjob`` lines separate the components, and ``--het-group``
    of srun selects one. Other scripts are returned unchanged. Line numbers do not change.
    """
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


def read_batch_lines(text: str, file: str) -> Iterator[tuple[str, Value]]:
    """Yield the options of the ``#SBATCH`` lines as (long or short option, value).

    The form is that of sbatch(1): ``--name=value``, ``--name value``, ``-N 2``, ``-N2``. Only lines
    before the first command count.
    """
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped.startswith("#") and stripped:
            return
        if not stripped.startswith("#SBATCH"):
            continue
        tokens = stripped.removeprefix("#SBATCH").split("#")[0].split()
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
