"""The error with which the log of any program ends: a record of one, or a sentence that says so.

The first error of the block at the end counts; what follows it is mostly its consequence. Lines that belong
to a record (its continuation), or that only say that the program stops, do not show that it went on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from allaboard.analysis.log_ends.error_records import error_message, goes_on_after, is_at_work
from allaboard.analysis.log_ends.post_traceback_output import progress_lines, work_over_line

MAX_LINES_TO_END = 200
"""Lines before the end of a log among which the error is looked for."""
MAX_LINE_CHARS = 2000
"""Characters of a line that are read."""
MAX_CONTINUATION_LINES = 12
"""Lines without a time that may belong to a record that has one."""
MAX_SENTENCES = 6
"""Lines at the end of a log among which a sentence without a severity is looked for."""
_TIME = re.compile(r"\d\d:\d\d:\d\d|(?:^|\[|\s)[IWEF]\d{4} |^\[?\d{10}\.")
"""The time in front of a record."""
_STOPS = re.compile(
    r"\b(?:fail(?:ed|ure|ing)?|exit(?:s|ing|ed)?|shut(?:s|ting)? ?down|abort(?:ed|ing)?|stop(?:ped|ping)"
    r"|terminat(?:ed|ing|ion)|kill(?:ed|ing)|clean(?:ed|ing)? ?up|releas(?:ed|ing)|relaunch"
    r"|end worker)\b",
    re.IGNORECASE,
)
"""Words of a program that stops."""
_SENTENCE = re.compile(
    r"\b(?:[Ff]ailed (?:to|with|on|because|due)|[Cc]annot|[Cc]ould not|[Uu]nable to|[Cc]an't|execv failed"
    r"|lost (?:communication|connection|contact)|(?:was|were|been|or) (?:killed|lost|evicted)|has died"
    r"|died unexpectedly|not enough|[Pp]ermission denied|[Nn]o such (?:file|host|device)"
    r"|[Ee]xiting with|[Ee]rror from|timed out (?:after|waiting)"
    r"|(?:NCCL|RCCL|CUDA|HIP|MPI|UCX) (?:failure|error)(?! of 0))\b"
    r"|^(?:[\w./()\[\] -]{1,60}: )?(?:fatal|[Ee]rror|ERROR|FATAL|failed): (?![\d.])"
    r"|: (?:[Rr]e)?[Cc]ompile with [A-Z]"
    r"|^[\w./-]{1,60}: (?:unrecognized|unknown|invalid|illegal) (?:option|argument)"
    r"|\b[Nn]o [\w ]{2,30} (?:found|available)\b[^\n]{0,40}[.:;!] [Pp]lease \w"
)
"""Says that something failed, in the words of any program."""
_EXCEPTION = re.compile(
    r"(?:^|[\])|>:}\"'` ])(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{2,60}(?:Error|Exception|Timeout): (?=\S{3})"
    r"|^Exception: (?=\S{3})"
)
"""The last line of an exception, behind any prefix."""
_JVM_EXCEPTION = re.compile(
    r"^(?:Exception in thread \"[^\"\n]{1,80}\" |Caused by: )?"
    r"(?:[a-z]\w{0,40}\.){1,8}[A-Z]\w{2,60}(?:Error|Exception)\b"
)
"""An exception of Java or Scala, which may have no message; its frames follow."""
_NCCL_WARNING = re.compile(r" NCCL WARN (?![^\n]*(?:[Pp]lugin|\bmay\b|\bset\b))")
"""A warning of NCCL: most of them are about a call that failed."""
MAX_PASTED_LINES = 300
"""Lines of a text that may be an excerpt: who pastes one mostly has the failure in it."""
_NO_FAILURE = re.compile(
    r"(?:\b|_)warn(?:ing)?\b|Warning|\b(?:0|no|none|zero) [\w ]{0,30}(?:failed|killed|lost|died)|\bif\b"
    r"|\bmay\b|\?$|^\s*(?:#|//|>>> |\$ |\+ )|\bINFO\b|\bDEBUG\d?\b|success|^:?\{",
    re.IGNORECASE,
)
"""A warning, a condition, an echoed command, the details of an error in JSON."""
_LESSER_RECORD = re.compile(
    r"^[^\n]{0,90}?(?:(?:^|[\[\s:])[WID]\d{3,4} \d\d:\d\d|\[[WID] \w+\.\w+:\d|\d\d:\d\d:\d\d[.\d]*: [WID] )"
)
"""Matches a record of a warning or less, in the form of glog, c10 and TensorFlow."""


def final_error(lines: Sequence[str]) -> int | None:
    """Return the index of the first of the records of errors with which a log ends; None if it ends
    otherwise, or says before that the work is done."""
    first_error: int | None = None
    loose_lines = 0
    for number in range(len(lines) - 1, max(-1, len(lines) - MAX_LINES_TO_END), -1):
        line = lines[number][:MAX_LINE_CHARS].rstrip()
        has_time = _TIME.search(line[:120]) is not None
        if error_message(line):
            if loose_lines and not has_time:
                break  # without a time in its records, a line that follows is one of its own
            first_error, loose_lines = number, 0
        elif is_at_work([line]) or work_over_line(line):
            break
        elif progress_lines([line]) and not _STOPS.search(line):
            if has_time or loose_lines == MAX_CONTINUATION_LINES:
                break
            loose_lines += 1
    if first_error is None or work_over_line("\n".join(lines[:first_error])):
        return None
    return first_error


def final_sentence(lines: Sequence[str]) -> int | None:
    """Return the index of the first line at the end of a log that says in plain words that something failed;
    None if there is none, or the program went on."""
    final = [n for n, line in enumerate(lines) if line.strip()][-MAX_SENTENCES:]
    begin = next((i + 1 for i in reversed(range(len(final))) if is_at_work([lines[final[i]]])), 0)
    if work_over_line("\n".join(lines)):
        return None
    for number in final[begin:]:
        line = lines[number][:MAX_LINE_CHARS].rstrip()
        if _SENTENCE.search(line) and not _is_no_failure(line):
            return number
    return None


def stated_failure(lines: Sequence[str]) -> int | None:
    """Return the index of the line of a short text that says most plainly that something failed, wherever it
    stands: an exception before a record of an error, that before a sentence; None if it shows a training."""
    if len(lines) > MAX_PASTED_LINES or is_at_work(lines) or work_over_line("\n".join(lines)):
        return None
    failures = [
        (kind, number)
        for number, line in enumerate(lines)
        if (kind := _kind_of_failure(line[:MAX_LINE_CHARS].rstrip())) is not None
    ]
    return min(failures)[1] if failures else None


def states_failure(line: str) -> bool:
    """Return True if the line by itself says that something failed."""
    return _kind_of_failure(line[:MAX_LINE_CHARS].rstrip()) is not None


def _kind_of_failure(line: str) -> int | None:
    """Return how plainly the line says that something failed, 0 most plainly; None if it does not."""
    if _NCCL_WARNING.search(line):
        return 2
    if _is_no_failure(line):
        return None
    if _EXCEPTION.search(line) or _JVM_EXCEPTION.match(line):
        return 0
    if error_message(line):
        return 1
    return 2 if _SENTENCE.search(line) else None


def _is_no_failure(line: str) -> bool:
    return bool(_NO_FAILURE.search(line) or _LESSER_RECORD.match(line)) or goes_on_after(line)
