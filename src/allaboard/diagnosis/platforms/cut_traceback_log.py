"""A log that breaks off in the middle of a traceback, or shows it without the head that Python prints."""

from __future__ import annotations

import re

from allaboard.analysis.failures.bare_exceptions import advice_of_line
from allaboard.analysis.failures.launcher_errors import is_launcher_file
from allaboard.analysis.log_messages import speaker_rank
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Heard, Speaker, Testimony
from allaboard.formats.dumps.cut_tracebacks import BREAKS_OFF, CutTraceback, cut_traceback

_LABEL = re.compile(r"^\[(?:rank|default|worker)?\s?\d{1,7}\]:? ?")
_RULE = "LOG012"
"""The rule of ends that no other one explains."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    if 'File "' not in exhibit.text and " │ " not in exhibit.text:
        return None
    lines = [_LABEL.sub("", line) for line in exhibit.text.split("\n")]
    found = cut_traceback(lines)
    if found is None:
        return None
    heard = Heard(
        rule=_RULE,
        says=_sentence(found),
        speakers=(
            Speaker(
                speaker_rank(lines[found.line], exhibit.rank),
                found.message or f"its last frame here: {found.frame}",
                exhibit.place_of_line(found.line),
            ),
        ),
        fix=_advice(found, exhibit.name),
        proves_not="which exception it was" if not found.message else "",
    )
    return Testimony(heard=(heard,))


def _sentence(found: CutTraceback) -> str:
    if found.message:
        return f"the log ends in an error: {found.message[:200]}"
    subject = f"spawned process {found.spawned}" if found.spawned >= 0 else "a process"
    if is_launcher_file(found.frame.file):
        return f"a launcher reports that a process of the job failed; {BREAKS_OFF}{found.frame}"
    if found.cause:
        return f"{subject} failed after {found.cause[:200]}; {BREAKS_OFF}{found.innermost}"
    called = f", called at {found.frame}" if found.frame != found.innermost else ""
    return f"{subject} raised an exception whose name is missing here: {BREAKS_OFF}{found.innermost}{called}"


def _advice(found: CutTraceback, name: str) -> str:
    if found.message:
        advice = advice_of_line(found.message)
        return (
            advice if not advice.startswith("collect ") else f"look at {found.frame}; then {advice}"
        )
    if found.cause:
        return f"{advice_of_line(found.cause)}; and the end of that traceback, from the whole log"
    return (
        "get the end of that traceback from the whole log: the line below its last frame names the "
        "exception; "
        f"grep -nE -A2 '^(\\[rank[0-9]+\\]: )?[A-Za-z_.]+(Error|Exception)\\b' LOG   # here only {name}"
    )


READER = LogReader(read=read_log)
