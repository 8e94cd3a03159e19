"""Losses in plain logs: Keras's bars, and lines such as "loss: 0.5", "loss=nan" or "{'loss': nan}"."""

from __future__ import annotations

import math
import re

from allaboard.analysis.log_messages import speaker_rank
from allaboard.analysis.numeric_advice import CHECK_BATCH, advise_numeric_check
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Heard, Speaker, Testimony
from allaboard.formats.dumps.printed_loss import last_training_loss

RULE = "NUM005"
_EXCEPTION = re.compile(r"^(?:\[\w+\]: ?)?(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): ")
"""Matches the last line of a traceback, which may quote the loss."""
_PLACE = re.compile(
    r"\b(?P<unit>epoch|step|iter(?:ation)?)s?['\"]?[ :=#\[(]{1,12}(?P<number>\d{1,9}(?:\.\d{1,6})?)\b",
    re.IGNORECASE,
)
MAX_LINES_BEFORE = 50
"""Lines before a loss in which the epoch may stand."""
MAX_LOSS_LINE_CHARS = 1000
"""Characters of a line that are read; a progress bar is rewritten in one line."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    lowered = text.lower()
    if "loss" not in lowered or ("nan" not in lowered and "inf" not in lowered):
        return None
    lines = text.replace("\r\n", "\n").split("\n")
    first_bad: tuple[int, str] | None = None
    for number, line in enumerate(lines):
        if _EXCEPTION.match(line):  # the rule of exceptions reports it
            continue
        value = last_training_loss(line.rpartition("\r")[2][-MAX_LOSS_LINE_CHARS:])
        if value is None:
            continue
        if math.isfinite(float(value)):
            first_bad = None
        elif first_bad is None:
            first_bad = number, value.lower()
    if first_bad is None:
        return None
    number, value = first_bad
    place = _place(lines, number)
    speaker = Speaker(
        speaker_rank(lines[number], exhibit.rank),
        lines[number].strip()[-300:],
        exhibit.place_of_line(number),
    )
    return Testimony(
        heard=(
            Heard(
                rule=RULE,
                says=f"the loss is {value} from {place} on"
                if place
                else f"the loss is {value} from here on",
                speakers=(speaker,),
                fix=f"{CHECK_BATCH}; {advise_numeric_check('')}",
                proves_not="on which rank it began: the average passes it on to all",
            ),
        )
    )


def _place(lines: list[str], number: int) -> str:
    """Return "epoch 2" or "step 40" where the loss at that line was written; "" if no line says so."""
    if match := _PLACE.search(lines[number]):
        return f"{match['unit'].lower()} {match['number']}"
    for line in reversed(lines[max(0, number - MAX_LINES_BEFORE) : number]):
        match = _PLACE.search(line)
        if match is not None and match["unit"].lower() == "epoch":  # the step before was another
            return f"epoch {match['number']}"
    return ""


READER = LogReader(read=read_log)
