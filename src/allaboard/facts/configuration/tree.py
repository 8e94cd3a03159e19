"""A parsed JSON or YAML text whose every node knows its position."""

from __future__ import annotations

import msgspec

from allaboard.errors import AllaboardError
from allaboard.facts.configuration.text_positions import Part


class Node(msgspec.Struct):
    """One node of the text."""

    kind: str
    """map, list, string, number, bool or null."""
    line: int
    """Its line, from 1."""
    column: int
    """Its column, from 1."""
    text: str = ""
    """A scalar as written, without quotes."""
    items: dict[str, Node] = {}
    """Nodes of a map, by key."""
    elements: list[Node] = []
    """Nodes of a list."""
    keys: dict[str, tuple[int, int]] = {}
    """Position of every key of a map."""
    twice: list[tuple[str, int, int]] = []
    """The later ones of equal keys: key, line, column."""
    changed_keys: set[str] = set()
    """Keys among these whose values are not the same text each time."""
    parts: tuple[Part, ...] = ()
    """Where the parts of a text stand that is not in the file letter by letter."""

    def node_at(self, *path: str | int) -> Node | None:
        """Return the node at this path of keys and indices; None if there is none."""
        node = self
        for step in path:
            if isinstance(step, int):
                if step >= len(node.elements):
                    return None
                node = node.elements[step]
            else:
                below = node.items.get(step)
                if below is None:
                    return None
                node = below
        return node

    def text_at(self, *path: str | int) -> str:
        """Return the text of the scalar at this path; "" if there is none."""
        node = self.node_at(*path)
        return node.text if node is not None and node.kind not in ("map", "list") else ""


class FormatError(AllaboardError, ValueError):
    """A text that is not of its format.

    ``said`` tells what was expected, ``near`` is the text at the place, ``correction`` the whole
    text as it may have been meant, "" where that cannot be guessed.
    """

    def __init__(self, reason: str, line: int, column: int, near: str = "", correction: str = ""):
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column
        self.near = near
        self.correction = correction
