"""Python text parsed without the warnings that the parser would print."""

from __future__ import annotations

import ast


def parse_without_warnings(source: str) -> ast.Module:
    """Return the syntax tree of a script, without the warnings that the parser prints about it.

    A text that is indented as a whole, as from the middle of a function, is read as its block.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the script cannot be parsed.
    """
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except IndentationError as error:
            block = _parse_block(source) if error.msg == "unexpected indent" else None
            if block is None:
                raise
            return block


def _parse_block(source: str) -> ast.Module | None:
    """Return a text that is indented as a whole, its positions unchanged; None if it is none."""
    try:
        tree = ast.parse(f"if True:\n{source}")
    except SyntaxError:
        return None
    body = tree.body[0]
    if len(tree.body) != 1 or not isinstance(body, ast.If) or body.orelse:
        return None
    tree.body = body.body
    return ast.increment_lineno(tree, -1)
