"""What allaboard itself says is not taken for a secret: else "(redacted)" would stand in its advice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import allaboard
from allaboard.formats.redaction import redact_text

SOURCE = Path(allaboard.__file__).parent
NOT_SAID = ("formats", "probe", "drills", "launch")
"""Rooms whose texts are patterns of secrets, or reach nobody through the redaction."""
MEANT = ("mailto://USER:PASSWORD@",)
"""Begins what is removed rightly: an address with a password in an example."""


def texts_of(file: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file but for docstrings and other strings that stand alone."""
    tree = ast.parse(file.read_text())
    alone = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in node.values}
            words = [p.value if isinstance(p, ast.Constant) else "rank" for p in node.values]
            yield node.lineno, "".join(map(str, words))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in alone
            and id(node) not in parts
        ):
            yield node.lineno, node.value


def test_no_text_of_ours_is_taken_for_a_secret() -> None:
    changed = [
        f"{file.relative_to(SOURCE)}:{line}: {redact_text(text)}"
        for file in sorted(SOURCE.rglob("*.py"))
        if file.relative_to(SOURCE).parts[0] not in NOT_SAID
        for line, text in texts_of(file)
        if " " in text and not any(words in text for words in MEANT) and redact_text(text) != text
    ]
    assert changed == []
