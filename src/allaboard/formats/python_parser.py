"""Python text parsed without the warnings that the parser would print."""

from __future__ import annotations

import ast


def parse_without_warnings(source: str) -> ast.Module:
    """Return the syntax tree of a script, without the warnings that the parser prints about it.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the script cannot be parsed.
    """
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)
