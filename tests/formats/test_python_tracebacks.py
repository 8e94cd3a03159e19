"""Tracebacks as CPython 3.11 prints them."""

from __future__ import annotations

import subprocess
import sys

from allaboard.formats.dumps.python_tracebacks import find_tracebacks

CHAINED = """def f():
    try:
        {}["x"]
    except KeyError as error:
        raise RuntimeError("bad") from error
f()
"""
HANDLED = CHAINED.replace(" from error", "")
GROUP = """def f():
    raise ValueError("in a part")
try:
    f()
except ValueError as error:
    part = error
raise ExceptionGroup("several", [part])
"""


def printed(script: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    return done.stderr.split("\n")


def test_a_chain_is_one_and_its_last_exception_counts() -> None:
    for script in (CHAINED, HANDLED):
        lines = printed(script)
        (one,) = find_tracebacks(lines)
        assert (one.type, one.message, one.begin, one.end) == (
            "RuntimeError",
            "bad",
            0,
            len(lines) - 1,
        )
        assert one.root_cause.startswith("KeyError: 'x'")


def test_an_exception_group_names_its_part() -> None:
    (one,) = find_tracebacks(printed(GROUP))
    assert (one.type, one.message, one.frames[-1].line) == ("ValueError", "in a part", 2)
    assert one.root_cause.startswith("ExceptionGroup: several (1 sub-exception)")


def test_two_that_nothing_chains_are_two() -> None:
    lines = printed('raise ValueError("a")')[:-1] * 2
    assert [t.begin for t in find_tracebacks(lines)] == [0, len(lines) // 2]


def test_what_torch_carries_over_from_another_process_is_one_with_it() -> None:
    # As torch.utils.data 2.13 words it.
    outer = ["Traceback (most recent call last):", '  File "/h/train.py", line 9, in <module>']
    inner = ["Original Traceback (most recent call last):", '  File "/h/data.py", line 4, in get']
    said = "ValueError: Caught ValueError in DataLoader worker process 0."
    (one,) = find_tracebacks([*outer, said, *inner, "ValueError: bad", ""])
    assert one.user_frame is not None and one.user_frame.file == "/h/data.py"
