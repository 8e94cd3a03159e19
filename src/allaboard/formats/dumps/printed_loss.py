"""The loss in a line that a program prints: Keras's bars, "loss: 0.5", "loss=nan", "{'loss': nan}"."""

from __future__ import annotations

import re

_NOT_A_TRAINING_LOSS = (
    "best",
    "min",
    "val",
    "valid",
    "eval",
    "test",
    "prev",
    "last",
    "init",
    "lowest",
)
"""Words before "loss" in losses that may be infinite or undefined in a healthy job."""
_LOSS = re.compile(
    r"(?<![A-Za-z])(?P<before>(?:[A-Za-z]{1,20}[ _/-])?)loss(?:_?value)?['\"]?\]?(?: is)?\s{0,3}[:=]?\s{0,4}"
    r"(?:tensor\()?(?P<value>[-+]?(?:nan|inf(?:inity)?|\d+(?:\.\d*)?(?:e[-+]?\d+)?))(?!\w|\.\d)",
    re.IGNORECASE,
)
_EVALUATION = re.compile(r"\b(?:val|valid\w*|eval\w*|test\w*)\b", re.IGNORECASE)
"""Words in a line that reports losses of an evaluation, which may be undefined."""


def last_training_loss(line: str) -> str | None:
    """Return the last training loss in the line; None for none."""
    if "loss" not in line.lower():
        return None
    values = [
        m["value"]
        for m in _LOSS.finditer(line)
        if m["before"].strip(" _/-").lower() not in _NOT_A_TRAINING_LOSS
        and not _EVALUATION.search(line, 0, m.start())
    ]
    return values[-1] if values else None
