"""Draws docs/rooms.svg from the imports of the source: `python scripts/draw_rooms.py [--check]`.

A floor is the length of the longest chain of imports below a room. Only arrows that no other path implies
are drawn, so that the picture stays readable; tests/test_layers.py has all of them.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from house import MODULES, files, imported, room_of  # noqa: E402

PICTURE = ROOT / "docs" / "rooms.svg"
WIDTH, BOX_HEIGHT, FLOOR_HEIGHT, GAP, MARGIN = 1240, 40, 84, 14, 20
"""Pixels."""
COLOURS = ("#e8f0fe", "#fef7e0", "#e6f4ea", "#fce8e6", "#f3e8fd", "#e0f7fa", "#fff3e0", "#f1f3f4")


def arrows_between_rooms() -> dict[str, set[str]]:
    """Return each room with the rooms that it imports."""
    arrows: dict[str, set[str]] = defaultdict(set)
    for file in files():
        room = room_of(file)
        if room == "__init__":
            continue
        arrows[room] |= {room_of(MODULES[name]) for _, name in imported(file)}
    return {room: below - {room, "__init__"} for room, below in arrows.items()}


def floor_numbers(arrows: dict[str, set[str]]) -> dict[str, int]:
    """Return the floor of each room, 0 for those that import nothing."""
    floors: dict[str, int] = {}

    def floor_of(room: str) -> int:
        if room not in floors:
            floors[room] = max((floor_of(below) + 1 for below in arrows[room]), default=0)
        return floors[room]

    for room in arrows:
        floor_of(room)
    return floors


def reduce_arrows(arrows: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the arrows that no longer path implies (the transitive reduction)."""
    reachable: dict[str, set[str]] = {}

    def reach(room: str) -> set[str]:
        if room not in reachable:
            reachable[room] = arrows[room].union(*(reach(below) for below in arrows[room]))
        return reachable[room]

    return {
        room: {b for b in below if not any(b in reach(other) for other in below - {b})}
        for room, below in arrows.items()
    }


def holds_files(room: str) -> bool:
    """Return False for a folder that only holds other folders."""
    return any(room_of(file) == room and file.name != "__init__.py" for file in files())


def place_boxes(rows: dict[int, list[str]], height: int) -> dict[str, tuple[float, float, float]]:
    """Return left edge, top edge and width of each room's box."""
    boxes: dict[str, tuple[float, float, float]] = {}
    for floor, rooms in rows.items():
        free = WIDTH - 2 * MARGIN - 60 - GAP * (len(rooms) - 1)
        width = min(170.0, free / len(rooms))
        y = height - MARGIN - FLOOR_HEIGHT * (floor + 1) + (FLOOR_HEIGHT - BOX_HEIGHT) / 2
        for column, room in enumerate(rooms):
            boxes[room] = (MARGIN + 60 + column * (width + GAP), y, width)
    return boxes


def add(parent: Element, tag: str, text: str = "", **attributes: object) -> Element:
    """Append an SVG element; "_" in a name stands for "-", numbers are rounded to tenths."""
    written = {
        name.replace("_", "-"): f"{value:.1f}" if isinstance(value, float) else str(value)
        for name, value in attributes.items()
    }
    element = SubElement(parent, tag, written)
    element.text = text or None
    return element


def draw_arrow(
    svg: Element, box: tuple[float, float, float], below: tuple[float, float, float]
) -> None:
    """Draw a curve from the bottom of one box to the top of another."""
    x1, y1 = box[0] + box[2] / 2, box[1] + BOX_HEIGHT
    x2, y2 = below[0] + below[2] / 2, below[1]
    bend = (y1 + y2) / 2
    curve = f"M{x1:.0f} {y1:.0f}C{x1:.0f} {bend:.0f} {x2:.0f} {bend:.0f} {x2:.0f} {y2:.0f}"
    add(svg, "path", d=curve, fill="none", stroke="#c4c7cc", marker_end="url(#tip)")


def draw_room(
    svg: Element, room: str, box: tuple[float, float, float], count: int, fill: str
) -> None:
    """Draw one box with the room's name and its number of files."""
    x, y, width = box
    middle = x + width / 2
    size = min(12.0, max(7.0, (width - 8) / len(room) / 0.55))
    add(svg, "rect", x=x, y=y, width=width, height=BOX_HEIGHT, rx=6, fill=fill, stroke="#80868b")
    add(svg, "text", room, x=middle, y=y + 17, text_anchor="middle", font_size=size)
    files_text = f"{count} file{'s' if count != 1 else ''}"
    add(
        svg,
        "text",
        files_text,
        x=middle,
        y=y + 32,
        text_anchor="middle",
        font_size=10,
        fill="#5f6368",
    )


def picture() -> str:
    """Return the house as SVG text, the same for the same source."""
    arrows = arrows_between_rooms()
    floors = {room: floor for room, floor in floor_numbers(arrows).items() if holds_files(room)}
    sizes: dict[str, int] = defaultdict(int)
    for file in files():
        sizes[room_of(file)] += file.name != "__init__.py"
    rows: dict[int, list[str]] = defaultdict(list)
    for room in sorted(floors):
        rows[floors[room]].append(room)
    height = 2 * MARGIN + FLOOR_HEIGHT * len(rows)
    tops = sorted({room.partition("/")[0] for room in floors})
    colours = {top: COLOURS[i % len(COLOURS)] for i, top in enumerate(tops)}
    boxes = place_boxes(rows, height)

    svg = Element("svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH} {height}")
    svg.set("font-family", "sans-serif")
    add(svg, "title", "The rooms of src/allaboard: each imports only rooms below it")
    add(svg, "rect", width=WIDTH, height=height, fill="white")
    size = {"viewBox": "0 0 8 8", "refX": 7, "refY": 4, "markerWidth": 6, "markerHeight": 6}
    marker = add(add(svg, "defs"), "marker", id="tip", orient="auto", **size)
    add(marker, "path", d="M0 0L8 4L0 8z", fill="#9aa0a6")
    for floor in rows:
        y = height - MARGIN - FLOOR_HEIGHT * (floor + 0.5) + 4
        add(svg, "text", f"floor {floor}", x=MARGIN, y=y, font_size=12, fill="#5f6368")
    for room, below in sorted(reduce_arrows(arrows).items()):
        for other in sorted(below):
            draw_arrow(svg, boxes[room], boxes[other])
    for room, box in sorted(boxes.items()):
        draw_room(svg, room, box, sizes[room], colours[room.partition("/")[0]])
    indent(svg)
    return tostring(svg, encoding="unicode") + "\n"


def main(arguments: list[str]) -> int:
    """Write the picture; with --check, return 1 if the one that is there is stale."""
    drawn = picture()
    if "--check" in arguments:
        stale = not PICTURE.exists() or PICTURE.read_text() != drawn
        if stale:
            print(f"stale: {PICTURE.relative_to(ROOT)}; run: make docs", file=sys.stderr)
        return int(stale)
    PICTURE.write_text(drawn)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
