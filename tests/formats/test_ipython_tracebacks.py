"""Tracebacks of notebooks, as IPython 5 to 9 print them, read as Python's own."""

from __future__ import annotations

import pytest

from allaboard.formats.dumps.ipython_tracebacks import (
    convert_headless,
    has_notebook_traceback,
    to_python_tracebacks,
)
from allaboard.formats.dumps.python_tracebacks import find_tracebacks

OLD = """Epoch 1/25
---------------------------------------------------------------------------
ValueError                                Traceback (most recent call last)
<ipython-input-31-c0de31aa> in <module>()
      1 with strategy.scope():
----> 2   fit(ds)

3 frames
/usr/local/lib/python3.7/dist-packages/keras/engine/training.py in fit(self, x)
   1180   x = 1
-> 1181     raise ValueError('no data')

ValueError: no data
"""
NEW = """---------------------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
Cell In[7], line 3
      1 import fit
----> 3 fit.go({})

File ~/work/fit.py:12, in go(config)
     10 def go(config):
---> 12     return config["lr"]

KeyError: 'lr'
"""


@pytest.mark.parametrize(
    ("text", "error", "innermost", "user"),
    [
        (OLD, "ValueError: no data", 1181, ("<ipython-input-31-c0de31aa>", 2)),
        (NEW, "KeyError: 'lr'", 12, ("~/work/fit.py", 12)),
    ],
)
def test_the_error_and_its_places_are_read(
    text: str, error: str, innermost: int, user: tuple[str, int]
) -> None:
    lines = text.split("\n")
    converted = to_python_tracebacks(lines)
    assert len(converted) == len(lines)
    (traceback,) = find_tracebacks(converted)
    assert f"{traceback.type}: {traceback.message}" == error
    assert traceback.frames[-1].line == innermost
    assert traceback.user_frame is not None
    assert (traceback.user_frame.file, traceback.user_frame.line) == user


def test_pythons_own_traceback_is_left_as_it_is() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: x\n'
    assert not has_notebook_traceback(text)
    assert to_python_tracebacks(text.split("\n")) == text.split("\n")


def test_frames_without_the_first_lines_are_read() -> None:
    lines = NEW.split("\n")[6:]
    converted = convert_headless(["some words", *lines])
    assert len(converted) == len(lines) + 1
    assert converted[1] == '  File "~/work/fit.py", line 12, in go'
    assert converted[-2] == "KeyError: 'lr'"


@pytest.mark.parametrize(
    "lines",
    [
        ["File a.py:3, in go was read", "-> no frame follows"],
        ["File ~/work/fit.py:12, in go(config)", "---> 12     return 1", "no error at the end"],
        NEW.split("\n"),
    ],
)
def test_what_is_whole_or_no_traceback_is_left(lines: list[str]) -> None:
    assert convert_headless(lines) == lines
