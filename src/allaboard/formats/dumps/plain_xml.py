"""XML of other programs, read without what makes XML dangerous: entities are refused, nothing is fetched, and
size and depth are bounded."""

from __future__ import annotations

from collections.abc import Iterator
from xml.parsers import expat

MAX_NBYTES = 32 << 20
"""Bytes of a document that is read; eight GPUs take about 200 KiB."""
MAX_DEPTH = 64
"""Levels of nested elements."""
MAX_ELEMENTS = 500_000
"""Elements of a document."""


class XmlElement:
    """One element, with its text and its children in their order."""

    __slots__ = ("attributes", "children", "name", "text")

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name = name
        self.attributes = attributes
        self.children: list[XmlElement] = []
        self.text = ""

    def find_all(self, name: str) -> Iterator[XmlElement]:
        """Yield the children of this name."""
        return (c for c in self.children if c.name == name)

    def value(self, *path: str) -> str:
        """Return the text of the element at this path of names, stripped; "" if it is not there."""
        element = self
        for name in path:
            child = next(element.find_all(name), None)
            if child is None:
                return ""
            element = child
        return element.text.strip()

    def walk(self) -> Iterator[XmlElement]:
        """Yield this element and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def read_xml(data: bytes) -> XmlElement:
    """Return the root of a document. Raises ValueError if it is malformed, too large, or defines entities."""
    if len(data) > MAX_NBYTES:
        raise ValueError(f"more than {MAX_NBYTES >> 20} MiB")
    stack: list[XmlElement] = [XmlElement("", {})]
    count = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if len(stack) > MAX_DEPTH or count > MAX_ELEMENTS:
            raise ValueError("too many elements")
        element = XmlElement(name, attributes)
        stack[-1].children.append(element)
        stack.append(element)

    def end(_name: str) -> None:
        stack.pop()

    def characters(text: str) -> None:
        stack[-1].text += text

    def refuse(*_declaration: object) -> None:
        raise ValueError("it defines entities")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    # Entities are how a small document becomes a huge one, or reads other files: nobody needs them here.
    parser.EntityDeclHandler = refuse
    parser.UnparsedEntityDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise ValueError(str(error)) from None
    return stack[0].children[0]
