"""The loss in a line that a program prints: Keras's bars, "loss: 0.5", "loss=nan", "{'loss': nan}"."""

from __future__ import annotations

import math
import re

_NO_LOSS_OF_STEP = frozenset(
    (
        *("best", "min", "minimum", "lowest", "smallest", "max", "maximum", "prev", "previous"),
        *("last", "old", "init", "initial", "start", "starting", "stop", "target", "threshold"),
        *("val", "valid", "validation", "eval", "evaluation", "test", "dev", "heldout", "packet"),
    )
)
"""Words in the name of a loss that may be infinite or undefined in a healthy job."""
_LOSS = re.compile(
    r"(?<![A-Za-z])(?P<before>(?:[A-Za-z]{1,20}\d{0,3}[ _/.-]){0,3})"
    r"(?P<word>loss)(?:es)?(?:[ _](?:value|step|epoch|total|train|avg|mean))?['\"]?\]?(?: is)?"
    r"\s{0,3}(?:[:=]\s{0,4}(?:(?:[a-zA-Z.]{0,10}[Tt]ensor|[Aa]rray)\(|[\['\"])?)?\s{0,4}"
    r"(?P<value>[-+]?(?:nan|inf(?:inity)?|\d+(?:\.\d*)?(?:e[-+]?\d+)?))"
    r"(?:(?<=[a-z])\.0)?(?!\w|\.\d|-[a-z]|/\d)",
    re.IGNORECASE,
)
"""Matches a loss and its value; Lightning writes ``nan.0`` in its bars."""
_EVALUATION = re.compile(
    r"\b(?:val|valid\w*|eval\w*|test\w*|dev|held.?out|infer\w*|predict\w*)\b", re.IGNORECASE
)
"""Words in a line that reports losses of an evaluation, which may be undefined."""
_EVALUATION_FIELD = re.compile(
    r"\b(?:split|phase|mode|stage|subset|dataset)['\"]?\s?[:=]\s?['\"]?(?:val|eval|test|dev)",
    re.IGNORECASE,
)
"""Matches a field that says the same, before the loss or behind it."""
_RECORD = re.compile(r"\b(?:best|lowest|smallest|initial)\b[^|,;\d]{0,20}$", re.IGNORECASE)
"""Matches what makes the loss behind it a record: "best so far: loss"."""
_HANDLED = re.compile(
    r"\b(?:skipping|ignoring|(?:skipped|ignored)(?!\s(?:iter|step|batch|update)))\b", re.IGNORECASE
)
"""Matches a line of a program that leaves out such a step by itself."""
_PATH = re.compile(r"(?<![\w.])(?:[A-Za-z]:)?(?:[/\\][\w.+-]{1,100}){2,20}")
"""Matches an absolute path, whose folders say nothing of the loss: ``/data/test/train.py:41: loss nan``."""
_STYLE = re.compile(r"\x1b\[[\d;]{0,12}m")
"""Matches colours of a terminal."""


def last_training_loss(line: str) -> str | None:
    """Return the last training loss in the line; None for none.

    If several are printed, a finite one comes first: a part of a loss, or the loss of a discriminator, may
    be infinite or undefined while the training is healthy. After a NaN in the parameters, none is finite.
    """
    if "loss" not in line.lower():
        return None
    line = _STYLE.sub("", line) if "\x1b" in line else line
    line = _PATH.sub("", line)
    if _HANDLED.search(line) or _EVALUATION_FIELD.search(line):
        return None
    values = [m["value"] for m in _LOSS.finditer(line) if _is_of_step(line, m)]
    finite = [value for value in values if math.isfinite(float(value))]
    return (finite or values or [None])[-1]


def _is_of_step(line: str, match: re.Match[str]) -> bool:
    """Return True if this is the loss of a training step: neither of an evaluation nor a record."""
    words = re.split(r"[ _/.-]", match["before"].lower())
    return (
        not _NO_LOSS_OF_STEP.intersection(words)
        and not _EVALUATION.search(line, 0, match.start("word"))
        and not _RECORD.search(line[max(0, match.start("word") - 40) : match.start("word")])
    )
