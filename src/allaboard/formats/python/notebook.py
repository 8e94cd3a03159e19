"""The Python code of a Jupyter notebook (nbformat 4), each line at the line of the notebook's file.

The cells share one namespace, so they are one script, in their order; a cell that begins with ``%%writefile
NAME.py`` is a script of its own. IPython's own lines (``%magic``, ``!command``) are left out, and so are
cells in another language and cells that do not parse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.facts import Node
from allaboard.formats.python_parser import parse_without_warnings

_MAGIC_LINE = re.compile(r"\A(?:(\s*)(?:[%!?]|\w+ = [!%]).*|(\s*)[\w.]+\?{1,2}\s*$)")
_WRITTEN_SCRIPT = re.compile(r"%%(?:writefile|file)\s+(?:-a\s+)?\S+\.py\s*$")
_TRANSPARENT_MAGIC = re.compile(r"%%(?:time|timeit|capture|prun)\b")
"""Matches cell magics whose cell is Python that runs in the notebook."""

Lines = list[tuple[int, str]]
"""Lines of a cell, each with its line in the notebook's file."""


def notebook_scripts(tree: Node) -> list[str]:
    """Return the scripts in a notebook: that of its cells, and those that its cells write to files.

    Line 7 of each is line 7 of the notebook's file, so lines of other cells are blank.
    """
    shared: Lines = []
    written: list[Lines] = []
    for cell in _code_cells(tree):
        magic = next((text for _, text in cell if text.strip()), "").strip()
        if _WRITTEN_SCRIPT.match(magic):
            written.append([line for line in cell if line[1].strip() != magic])
        elif not magic.startswith("%%") or _TRANSPARENT_MAGIC.match(magic):
            lines = [(number, _MAGIC_LINE.sub(r"\1\2pass", text)) for number, text in cell]
            if _parses(lines):
                shared += lines
    return [_at_their_lines(lines) for lines in (shared, *written) if lines]


def _code_cells(tree: Node) -> Iterator[Lines]:
    cells = tree.node_at("cells")
    last_line = 0
    for cell in cells.elements if cells is not None else []:
        source = cell.node_at("source")
        if cell.text_at("cell_type") != "code" or source is None:
            continue
        lines: Lines = []
        for piece in source.elements or [source]:
            for text in piece.text.removesuffix("\n").split("\n"):
                # A cell that is one string has all of its lines in one line of the file.
                last_line = max(piece.line, last_line + 1)
                lines.append((last_line, text))
        yield lines


def _parses(lines: Lines) -> bool:
    try:
        parse_without_warnings("\n".join(text for _, text in lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _at_their_lines(lines: Lines) -> str:
    by_line = dict(lines)
    return "\n".join(by_line.get(number, "") for number in range(1, max(by_line) + 1)) + "\n"
