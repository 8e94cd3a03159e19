"""What is told of an error of TensorFlow's."""

from __future__ import annotations

from allaboard.launch.serving.ps_snapshotter import _one_line

LONG = """Graph execution error:

Detected at node 'Variable_1' defined at (most recent call last):
  File "a.py", line 1, in <module>
Node: 'Variable_1'
Attempting to use uninitialized value ref
\t [[{{node Variable_1}}]]
"""


def test_the_cause_comes_after_the_node() -> None:
    assert _one_line(ValueError(LONG)) == "ValueError: Attempting to use uninitialized value ref"
    assert _one_line(ValueError("lost\nmore")) == "ValueError: lost"
    assert _one_line(ValueError()) == "ValueError: "
