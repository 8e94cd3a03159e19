"""The ``#SBATCH`` lines of a script: options of sbatch(1) in comments. They are read without the shell's own
words, which take longer to load.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.facts import Origin, Value


def batch_lines(text: str, file: str, mark: str = "#SBATCH") -> Iterator[tuple[str, Value]]:
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
        words = stripped[len(mark) :].split("#")[0].split()
        while words:
            option = words.pop(0)
            if not option.startswith("-"):
                continue
            name, equals, value = option.partition("=")
            if not name.startswith("--") and len(name) > 2:
                name, value, equals = name[:2], name[2:], "="
            if not equals and words and not words[0].startswith("-"):
                value = words.pop(0)
            column = line.find(option) + 1
            yield name, Value(value, Origin(flag=name, file=file, line=number, column=column))
