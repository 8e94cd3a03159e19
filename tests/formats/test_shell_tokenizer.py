"""What the splitter of shell scripts makes of quotes, expansions, arrays and redirections."""

from __future__ import annotations

import time

import pytest

from allaboard.formats.shell.tokenizer import read_commands


def split(text: str) -> list[tuple[list[str], str]]:
    """Return the words of each command, with expansions in angle brackets, and the operator that ends it."""
    return [
        (
            ["".join(p.text if p.literal else f"<{p.text}>" for p in w.pieces) for w in c.words],
            c.terminator,
        )
        for c in read_commands(text)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A "$" before the closing quote, or before a bracket, stands for itself.
        ('grep "foo$" x; y "z"', [(["grep", "foo$", "x"], ";"), (["y", "z"], "")]),
        ("(grep x$)", [(["grep", "x$"], ")")]),
        ("echo \"$'a'\" $1b", [(["echo", "$'a'", "<>b"], "")]),
        # A string with escapes is not decoded, and ends at its quote.
        ("IFS=$';' python a.py; b", [(["IFS=<>;", "python", "a.py"], ";"), (["b"], "")]),
        ('IFS=$"c d" b', [(["IFS=<>c d", "b"], "")]),
        # An array ends at its own bracket, not at the first one.
        ("a=($(x y)); b", [(["a=<$(x y)> "], ";"), (["b"], "")]),
        ("a=(x ${b[@]:1} y) c", [(["a=x <${b[@]:1}> y ", "c"], "")]),
        # Redirections of both outputs, and over a file that exists, end no command.
        ("torchrun a.py >& log; b", [(["torchrun", "a.py", "log"], ";"), (["b"], "")]),
        ("echo a >| b", [(["echo", "a", "b"], "")]),
        ("a 2>&1 | b", [(["a"], "|"), (["b"], "")]),
    ],
)
def test_a_text_is_split_as_a_shell_does(text: str, expected: list[tuple[list[str], str]]) -> None:
    assert split(text) == expected


def test_nested_arrays_take_neither_a_deep_stack_nor_long() -> None:
    started = time.process_time()
    for repeated in ("a=(", "a=(b ", "a=($("):
        assert split(repeated * 20_000)
    assert time.process_time() - started < 10
