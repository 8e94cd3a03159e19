"""YAML 1.1 read into nodes with positions, from PyYAML's event stream.

The tree is built here rather than by PyYAML's composer because that one recurses (a text nested a hundred
thousand deep ends the process) and because aliases must stay shared: a node that is referred to a billion
times through nested aliases is still one node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from allaboard.facts import FormatError, Node
from allaboard.formats.source_map import align_text

MAX_DEPTH = 100
"""Levels of nesting that are read; the deepest manifests of the field have about 20."""
MAX_NODES = 300_000
"""Nodes that are read of one text: about 100 MB of memory."""

_NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?\Z")
_MAY_EMBED_TEXT = re.compile(r"[\s\"']")
"""Matches text that may be a script or JSON: positions inside it are looked up."""
_INDENTED = re.compile(" *")
_BOOL = frozenset(["true", "false", "yes", "no", "on", "off"])


def read_yaml(text: str) -> Iterator[Node]:
    """Yield the tree of every document of a YAML text.

    Raises:
        FormatError: at the first place that is not YAML, is nested too deep, or is one node too
            many; documents before it have been yielded.
    """
    import yaml

    # Events alone are read: no tag of the text makes an object.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(yaml, text)
    try:
        for event in yaml.parse(text, Loader=loader):
            document = builder.take(event)
            if document is not None:
                yield document
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        message = " ".join(str(p) for p in (error.context, error.problem) if p)
        raise FormatError(message, line, column, _line(text, line)) from None
    except yaml.YAMLError as error:
        raise FormatError(" ".join(str(error).split())[:200], 1, 1) from None


def _line(text: str, number: int) -> str:
    lines = text.split("\n", number)
    return lines[number - 1].strip()[:60] if len(lines) >= number else ""


class _Builder:
    """Builds trees from events without recursion, with one open collection a level."""

    def __init__(self, yaml: Any, text: str) -> None:
        self.yaml = yaml
        self.text = text
        self.count = 0
        self.open: list[tuple[Node, list[Node], str]] = []
        self.anchors: dict[str, Node] = {}
        self.root: Node | None = None

    def take(self, event: Any) -> Node | None:
        """Return the finished document if this event ends one, else None."""
        y = self.yaml
        if isinstance(event, y.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, (y.MappingStartEvent, y.SequenceStartEvent)):
            self._start(event, "map" if isinstance(event, y.MappingStartEvent) else "list")
        elif isinstance(event, (y.MappingEndEvent, y.SequenceEndEvent)):
            node, _, anchor = self.open.pop()
            # Not before it is finished: an alias within its own anchor would be a circle.
            if anchor:
                self.anchors[anchor] = node
            self._place(node)
        elif isinstance(event, y.AliasEvent):
            target = self.anchors.get(event.anchor)
            if target is None:
                raise self._error(event, f"the alias *{event.anchor} stands for no finished node")
            # The node itself, no copy: a few aliases of aliases can stand for billions of nodes.
            self._place(target)
        elif isinstance(event, y.DocumentStartEvent):
            self.root, self.anchors = None, {}
        elif isinstance(event, y.DocumentEndEvent):
            return self.root
        return None

    def _scalar(self, event: Any) -> None:
        mark = event.start_mark
        plain = event.style in (None, "")
        kind = _kind(event.value) if plain and not event.tag else "string"
        node = Node(kind, mark.line + 1, mark.column + 1, event.value)
        if _MAY_EMBED_TEXT.search(event.value) and (not plain or event.end_mark.line > mark.line):
            self._inside(node, event)
        self._counted(event)
        if event.anchor:
            self.anchors[event.anchor] = node
        self._place(node)

    def _inside(self, node: Node, event: Any) -> None:
        """Note the position of the node's text, after its quotes or a block's head."""
        begin, end, style = event.start_mark.index, event.end_mark.index, event.style
        line, column = node.line, node.column
        if style in ("'", '"'):
            begin, end, column = begin + 1, end - 1, column + 1
        elif style in ("|", ">"):
            begin = self.text.find("\n", begin) + 1
            line += 1
            while self.text[begin : begin + 1] == "\n":
                begin, line = begin + 1, line + 1
            indentation = _INDENTED.match(self.text, begin)
            column = 1 if indentation is None else indentation.end() - begin + 1
            begin += column - 1
            node.line, node.column, style = line, column, "plain"
        source_text = self.text[begin:end]
        node.parts = align_text(event.value, source_text, line, column, style or "plain")

    def _start(self, event: Any, kind: str) -> None:
        if len(self.open) >= MAX_DEPTH:
            raise self._error(event, f"nested deeper than {MAX_DEPTH} levels")
        self._counted(event)
        mark = event.start_mark
        self.open.append((Node(kind, mark.line + 1, mark.column + 1), [], event.anchor or ""))

    def _place(self, node: Node) -> None:
        if not self.open:
            self.root = node
            return
        parent, pending, _ = self.open[-1]
        if parent.kind == "list":
            parent.elements.append(node)
            return
        if not pending:
            pending.append(node)
            return
        key = pending.pop()
        name = key.text if key.kind not in ("map", "list") else f"?{key.line}:{key.column}"
        # The merge key of YAML 1.1: the mapping's own keys win, those before it and those after it.
        if name == "<<" and node.kind == "map":
            for inherited, value in node.items.items():
                parent.items.setdefault(inherited, value)
            return
        if name in parent.keys:
            parent.twice.append((name, key.line, key.column))
            earlier = parent.items[name]
            if "map" in (node.kind, earlier.kind) or "list" in (node.kind, earlier.kind):
                parent.changed_keys.add(name)  # not compared: each may be as large as the file
            elif (node.kind, node.text) != (earlier.kind, earlier.text):
                parent.changed_keys.add(name)
        parent.keys[name] = (key.line, key.column)
        parent.items[name] = node

    def _counted(self, event: Any) -> None:
        self.count += 1
        if self.count > MAX_NODES:
            raise self._error(event, f"more than {MAX_NODES} nodes in one text")

    @staticmethod
    def _error(event: Any, message: str) -> FormatError:
        return FormatError(message, event.start_mark.line + 1, event.start_mark.column + 1)


def _kind(text: str) -> str:
    """Return the kind of a plain scalar by YAML 1.1's rules, as far as manifests need it."""
    if text in ("", "~") or text.lower() == "null":
        return "null"
    if text.lower() in _BOOL:
        return "bool"
    return "number" if _NUMBER.match(text) else "string"
