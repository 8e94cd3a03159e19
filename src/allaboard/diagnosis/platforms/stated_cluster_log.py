"""A TF_CONFIG that a log quotes, and whose task is not in its own cluster.

Estimators, operators and people's own scripts print it at the start; the exception may be cut off.
"""

from __future__ import annotations

import ast
import json
import re

from allaboard.analysis.log_ends.post_traceback_output import training_over_line, trains_on_after
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Heard, Speaker, Testimony

_STATED = re.compile(r"TF_CONFIG\b[^\n{]{0,60}(?P<value>\{[^\n]{1,8000}\})")
MAX_STATED = 64
"""Places in a log that are read."""
MIN_STEPS_AFTER = 2
"""Lines about loss or steps after it that show that the framework took it."""
_OUTSIDE = {"evaluator", "tensorboard"}
"""Jobs whose task is by right not in the cluster."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    if "TF_CONFIG" not in text or training_over_line(text):
        return None
    for count, match in enumerate(_STATED.finditer(text)):
        if count >= MAX_STATED:
            break
        why = _contradiction(match["value"])
        if why and not trains_on_after(text, match[0], MIN_STEPS_AFTER):
            number = text.count("\n", 0, match.start())
            heard = Heard(
                rule="LOG013",
                says=f"the TF_CONFIG that a process prints is wrong: {why}",
                speakers=(
                    Speaker(
                        exhibit.rank,
                        " ".join(match[0].split())[:300],
                        exhibit.place_of_line(number),
                    ),
                ),
                fix="echo $TF_CONFIG; allaboard check   # in that process's environment: the task must "
                "be one of its cluster, of which every process gets the same",
                explains=("LOG012",),
            )
            return Testimony(heard=(heard,))
    return None


def _contradiction(value: str) -> str:
    """Return what is wrong with a TF_CONFIG, as JSON or as Python prints it; "" if nothing is."""
    config = _parse(value)
    cluster, task = config.get("cluster"), config.get("task")
    if not isinstance(cluster, dict) or not isinstance(task, dict) or not cluster:
        return ""
    job, index = task.get("type"), task.get("index")
    if not isinstance(job, str) or job in _OUTSIDE:
        return ""
    jobs = ", ".join(str(name) for name in list(cluster)[:8])
    if job not in cluster:
        return f"its task is {job} {index}, and its cluster has no {job} (it has {jobs})"
    members = cluster[job]
    number = int(index) if isinstance(index, str) and index.isdecimal() else index
    if not isinstance(members, list) or not isinstance(number, int):
        return ""
    if not 0 <= number < len(members):
        return f"its task is {job} {number}, and its cluster has {len(members)} of them, from 0 on"
    return ""


def _parse(value: str) -> dict[str, object]:
    """Return the TF_CONFIG; empty if it cannot be read, since the line may go on after it."""
    for end in (len(value), value.rfind("}}") + 2):
        try:
            parsed = json.loads(value[:end])
        except ValueError:
            try:
                parsed = ast.literal_eval(value[:end])
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
        if isinstance(parsed, dict):
            return parsed
    return {}


READER = LogReader(read=read_log)
