"""Which process has failed, by the end of its program's output."""

from __future__ import annotations

import pytest

from allaboard.analysis.failures.printed_failure import find_printed_failure

TRACEBACK = """Process Process-2:
Traceback (most recent call last):
  File "/usr/lib/python3.11/multiprocessing/process.py", line 314, in _bootstrap
    self.run()
  File "/home/u/train.py", line 4, in load
    for i in range(rows[name]):
                   ~~~~^^^^^^
KeyError: 'valid'
"""
CHAINED = TRACEBACK + (
    "\nDuring handling of the above exception, another exception occurred:\n\n"
    'Traceback (most recent call last):\n  File "/home/u/train.py", line 9, in load\n    raise\n'
    "RuntimeError: no data\n"
)


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        pytest.param(TRACEBACK, "Process-2: KeyError: 'valid'", id="the traceback is the last"),
        pytest.param("step 1\n" + CHAINED, "Process-2: RuntimeError: no data", id="a chain"),
        pytest.param(TRACEBACK + "retrying\n", "", id="the program went on"),
        pytest.param(TRACEBACK[TRACEBACK.index("Trace") :], "", id="of the program itself"),
        pytest.param("step 1\n", "", id="no traceback"),
        pytest.param("", "", id="no output"),
    ],
)
def test_the_last_traceback_of_a_process(text: str, failure: str) -> None:
    assert find_printed_failure(text) == failure
