"""JSON objects with tracebacks that a logger wrote over several lines."""

from __future__ import annotations

import pytest

from allaboard.formats.dumps.json_lines import join_spread_objects
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD

OBJECT = f'{{\n  "stack": "{TRACEBACK_HEAD}"\n}}'
JOINED = f'{{"stack":"{TRACEBACK_HEAD}"}}'


@pytest.mark.parametrize(
    ("text", "joined", "numbers"),
    [
        (f"[\n{OBJECT},\n{OBJECT}\n]", f"[\n\n{JOINED}\n\n{JOINED}\n]", (1, 2, 2, 5, 5, 8)),
        (f"E: {OBJECT}  \r\nends", f"E:\n{JOINED}\nends", (1, 1, 4)),
        (f"open {{\n{OBJECT}", f"open {{\n\n{JOINED}", (1, 2, 2)),
    ],
)
def test_objects_are_joined_at_the_lines_they_begin_at(
    text: str, joined: str, numbers: tuple[int, ...]
) -> None:
    result = join_spread_objects(text)
    assert result is not None and (result.text, result.numbers) == (joined, numbers)


@pytest.mark.parametrize(
    "text",
    [
        f"{{\n {TRACEBACK_HEAD}\n}}",
        f'{TRACEBACK_HEAD}\n{{\n "a": 1\n}}',
        TRACEBACK_HEAD + "\nnode {\n" * 60_000 + "}\n" * 60_000,
    ],
    ids=("no JSON", "no traceback in it", "braces of another language"),
)
def test_what_is_no_such_object_stays_as_it_is(text: str) -> None:
    assert join_spread_objects(text) is None
