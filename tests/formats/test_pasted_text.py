"""Pasted logs: quotes are taken off, and tracebacks without a head are found."""

from __future__ import annotations

import pytest

from allaboard.diagnosis.logs.log_demux import restore_heads, unquote_lines
from allaboard.facts import Exhibit
from allaboard.formats.dumps.pasted_text import missing_heads, unquote

FRAMES = ['  File "/app/fit.py", line 3, in <module>', "    main()"]


def test_a_log_that_is_quoted_in_full_is_unquoted() -> None:
    assert unquote("> step 1\n> step 2\n") == "step 1\nstep 2\n"


@pytest.mark.parametrize(
    "text", ["> step 1\nstep 2\n", ">>> import jax\n>>> jax.devices()\n", "a > b\n"]
)
def test_other_signs_stay(text: str) -> None:
    assert unquote(text) == text


def test_an_export_in_double_quotes_is_unquoted() -> None:
    text = '" File "/app/fit.py", line 3, in f"\n"    g()"\nworkerpool0-0\n"ValueError: no"\n'
    assert unquote(text) == '  File "/app/fit.py", line 3, in f\n    g()\n\nValueError: no\n'


@pytest.mark.parametrize(
    ("above", "end", "found"),
    [
        ("step 1", "ValueError: no", [1]),
        ("step 1", "tensorflow.python.errors_impl.UnavailableError: OS Error", [1]),
        ("Traceback (most recent call last):", "ValueError: no", []),
        ("Stack (most recent call last):", "ValueError: no", []),
        ("Caused by op 'x', defined at:", "ValueError: no", []),
        ("step 1", "step 2", []),
    ],
)
def test_a_head_is_missed_only_above_an_exception(above: str, end: str, found: list[int]) -> None:
    assert list(missing_heads([above, *FRAMES, end])) == found


def test_a_restored_head_keeps_the_numbers_of_the_lines() -> None:
    exhibit = Exhibit(name="w.log", data="\n".join(["step 1", *FRAMES, "ValueError: no"]).encode())
    restored = restore_heads(exhibit)
    assert "Traceback" in restored.text
    assert restored.place_of_line(restored.text.split("\n").index("ValueError: no")).line == 4


def test_a_plain_exhibit_is_returned_as_it_is() -> None:
    exhibit = Exhibit(name="w.log", data=b"step 1\nstep 2\n")
    assert unquote_lines(exhibit) is exhibit
    assert restore_heads(exhibit) is exhibit


def test_a_bar_before_each_line_is_taken_away_but_not_that_of_an_exception_group() -> None:
    barred = '  | Traceback (most recent call last):\n  |   File "/a.py", line 1, in f\n  | ValueError: no'
    assert unquote(barred).startswith("Traceback (most recent call last):\n  File")
    group = "  + Exception Group Traceback (most recent call last):\n" + barred
    assert unquote(group) == group


def test_a_native_stack_with_pythons_head_is_no_traceback() -> None:
    assert "Traceback (" not in unquote("C++ Traceback (most recent call last):\n0   paddle::f()")
