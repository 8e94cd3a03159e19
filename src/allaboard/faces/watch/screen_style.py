"""Styles of the screen where colours are not wanted."""

from __future__ import annotations

from allaboard.report.plain_text import allows_colours

ATTRIBUTES = frozenset(("bold", "dim", "reverse", "underline"))
"""Words of a style that are no colour."""


def screen_style(style: str) -> str:
    """Return the style in rich's words, with ``NO_COLOR`` without its colours.

    Textual turns colours into greys then, and the grey of red or blue is hardly readable on black.
    """
    if allows_colours():
        return style
    return " ".join(part for part in style.split() if part in ATTRIBUTES)
