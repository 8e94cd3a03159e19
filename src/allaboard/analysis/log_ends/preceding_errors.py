"""The errors that a log reports shortly before its end: they mostly say why a process aborted or exited, or
raised an exception whose own words say nothing.

Native code, drivers and launchers write the reason as a line of their own, and what follows (a traceback, an
abort, a lost connection, the launcher's summary) only passes it on. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from allaboard.analysis.log_ends.error_records import (
    error_message,
    is_at_work,
    is_survived,
    reports_task_end,
)
from allaboard.analysis.log_ends.pasted_sentences import introduces_paste
from allaboard.analysis.log_ends.post_traceback_output import progress_lines, work_over_line
from allaboard.facts import LoggedReason

MAX_LINES = 600
"""Lines at the end of a log among which the errors are looked for."""
MAX_GAP_LINES = 12
"""Other lines between two errors of one block, and between the block and what ended the process."""
MAX_LINE_CHARS = 2000
"""Characters of a line that are read."""
MIN_WORDS = 2
"""Words of a message that say something."""
_PROGRESS_BAR = re.compile(r"^[^\n]{0,200}?(?:it/s|s/it)[^\]]{0,40}\]\s*")
"""A progress bar, after which a message may begin in the same line."""
_COUNTS_WORK = re.compile(
    r"\b(?:loss|epoch|step|iter(?:ation)?)\b[\s:=#\[(]{1,8}\d[^\n]{0,200}\b(?:loss|acc\w*|err\w*|rate|lr|time|eta)\b",
    re.IGNORECASE,
)
"""A line on the progress of a training, whatever numbers of errors it has."""
_HEADER = re.compile(r"^[^\n]{0,160}?\.(?:cc|cpp|cu|h|py|go|c|rs):\d{1,6}\]\s*(?=\S)")
"""The time and the place in the source before a message."""
_WARNING = re.compile(
    r"\bNCCL WARN\b|\bWARN(?:ING)?\b|^(?:\S+ ){0,3}?\[?W\d{3,4} \d\d:\d\d|\[W\d{3,4} "
    r"|: W \S+:\d+\]|\[W \w+\.\w+:\d"
)
_ADJUSTS = re.compile(
    r"[;,.] ?(?:using|setting|assuming|defaulting|will use|skipping|ignoring|leaving|proceeding|continuing"
    r"|returning|will proceed)\b|\bfall(?:ing|s)? ?back\b|\b(?:will be|is) (?:disabled|ignored)\b"
    r"|\bexpected (?:if\b(?![^\n]*\botherwise\b)|(?:to happen )?(?:during|at) shutdown)|\?(?: \w{1,8})?$",
    re.IGNORECASE,
)
"""Words of a warning that tells what is done instead, of one at the end of a job, and of a question."""
_ATTEMPT = re.compile(
    r"\bfailed to connect\b|\bconnect(?:ion)?\b[^\n]{0,60}\b(?:refused|timed out|failed|timeout)\b",
    re.IGNORECASE,
)
"""A try to connect, which the next may follow."""
_DETAIL = re.compile(
    r"^\s*(?:srun: error: \S+: tasks? [\d,-]+:"
    r"|what\(\):|Additional GRPC error|:?\{\"|CUDA kernel errors might|Exception raised from|frame #\d"
    r"|Device-side assert|Compile with|For debugging|\(\d+\) |\[\[\{\{)"
    r"|^.{0,60}terminate called after|\(core dumped\)"
    r"|^(?:Aborted|Killed|Terminated|Segmentation fault|Bus error)\b|^\[signal SIG"
    r"|^\s*\S[^()\n]{0,200} \([^()\s]{1,200}:\d+\)$"
)
"""More of a message that another line began, and a frame of a stack."""
_ENDED = re.compile(
    r"\bexit(?:ed|s)?(?: with)?(?: an?)?(?: non-zero)?(?: exit)? (?:code|status)(?: of)?[ :=]{0,3}\(?-?[1-9]"
    r"|\b(?:returned|ended with)(?: a)?(?: non-zero)? (?:exit )?(?:code|status)[ :=]{0,3}-?[1-9]"
    r"|\b(?:[Pp]hase|[Ss]tatus|[Ss]tate|[Rr]eason|[Tt]ype)\b\"?[:= ]{1,40}\"?(?:Failed|Failure|Error|Evicted"
    r"|OOMKilled|\w{1,30}BackOff|Unschedulable|NodeLost|FAILED|ERROR|TIMEOUT|NODE_FAIL|OUT_OF_MEMORY|PREEMPTED)\b"
    r"|^(?:\S+ {1,12}){1,3}(?:\w{0,20}BackOff|\w{0,20}Err\w{0,20}|Evicted|OOMKilled|Init:Error) {2,}\d"
    r"|^\s*(?:[\dsmhd]+(?: \([^)]{1,40}\))? +)?Warning +(?!BackOff\b)[A-Z]\w{2,40} +"
    r"|\bis in state (?:FAILED|PREEMPTED|ERROR)"
)
"""The end of a process, a container or a job, as whoever looks after it states it at any level."""
_STALLS = re.compile(
    r"\b(?:missing|absent) (?:ranks?|workers?|hosts?|nodes?|tasks?)\b"
    r"|\b(?:waiting for|stalled|stuck|no progress|not responding)\b[^\n]{0,100}?\bfor (?:more than )?\d+ ?s"
)
"""A wait that its writer finds too long."""
_LESSER = re.compile(
    r"\b(?:INFO|DEBUG|TRACE)\b|^(?:\[rank\d{1,7}\]:)?\s*raise [A-Z]\w{2,60}\("
    r"|^(?:\S+ ){0,3}?\[?[ID]\d{3,4} \d\d:\d\d|: I \S+:\d+\]|^\s*(?:#|//"
    r"|>>> |\$ |\+ )"
)
_FAILS = re.compile(
    r"(?<![/.\w-])(?:fail(?:ed|ure|s)?|errors?|cannot|can't|could(?: not|n't)|unable to|refused"
    r"|unreachable|not found"
    r"|no such|denied|mismatch(?:ed)?|invalid|illegal|unexpected(?:ly)?|rejected|exceed(?:s|ed)|timed? ?out"
    r"|timeout|out of (?:host |device )?memory|oom(?:-kill)?|evicted|preempt(?:ed|ion)|lost|died|crashed"
    r"|(?<!or )abort(?:ed|ing|s)|not supported|unsupported|too (?:big|large|small|old|many|few)"
    r"|does not exist|not enough|insufficient|no space|disconnected|corrupt(?:ed)?|unrecognized|exhausted"
    r"|disallowed|expired|unschedulable"
    r"|was not built|doesn't have|fault|violation|was taken|already (?:in use"
    r"|taken|bound))\b(?![/.=]\w)"
    r"|\bOOM\b|\b(?:terminated|exited|ended|returned) with (?:a )?(?:non-zero )?(?:exit )?(?:code"
    r"|status|signal)\b"
    r"|\bAssertion\b|\b[A-Z][a-z]\w{1,60}(?:Error|Exception): ?\S|\bException in \w|\bpreempted\b|\bPREEMPT",
    re.IGNORECASE,
)
"""Words of a line that something failed."""
_NATIVE_STACK = re.compile(
    r"^(?:\[[^\]\s]{1,80}\] ?)?\w{2,60} \([\w./-]{1,120}\.(?:c|cc|cpp):\d+\): (?=\S)"
    r"|^(?:\[[^\]\s]{1,80}\] ?)?[\w.-]{2,60}\.(?:c|cc|cpp):\d+ +(?=[A-Z])"
)
"""A function of native code with the place in its source, in which a call failed; callers follow."""
_STATED = re.compile(
    r"\b(?:Last|Original|Root|Underlying) (?:error|cause|exception)s?\b ?: ?\S|[.;] Reason: \S|\bDUE TO [A-Z]"
    r"|\boom-kill\b|\bCaused by: \S"
)
"""Words that announce a reason in the same line; a batch system's for the end of a job."""
_ANNOUNCES = re.compile(
    r"\b(?:Last error|Original error|Root cause|Caused by|The error was|Error details?"
    r"|[Mm]issing ranks)\b ?: ?$"
)
"""The same at the end of a line: the reason is in the next."""
_PRINTS_LOG = re.compile(
    r"^(?P<prefix>.{0,160}?)(?:printing [\w ]{0,30}log(?: file)?|Last \d+ bytes of [\w./-]{1,60}"
    r"|(?:[Oo]utput|stderr|[Ll]og) of [^:\n]{1,80})[ :.]{1,6}$"
)
"""Announces the log of another program, which is printed below it, mostly indented."""
_WAITS = re.compile(r"\bstill waiting for\b")
_RULE = re.compile(r"(?:^|[:>\]] ?)(?:-{20,}|={20,}|\*{20,}|#{20,})\s*$")
"""A rule above and below a text."""
_NAMED_VALUE = re.compile(r"[A-Z][\w ]{1,30}: +\S")
_PASSED_ON = re.compile(r"-> -?[1-9]\d{0,3}(?: \[[^\]]{1,40}\])?$|\b(?:Test|test) .{0,20}failure\b")
"""A function that returns an error of the one that it called."""
_MENDED = re.compile(
    r"\b(?:succe(?:eded|ssful|ssfully)|recovered|(?:re)?started container|Started|completed"
    r"|is running|resumed)\b",
    re.IGNORECASE,
)
"""Words of a line after an error that was mended, or that did no harm."""
MAX_LOOSE_LINES = 2
"""Lines of other kinds among the errors with which a log ends."""
MAX_HELP_LINES = 24
"""Lines of such a text."""
_CONSEQUENCE = re.compile(
    r"exit(?:ed|s|ing)?\b[^\n]{0,24}\b(?:code|status)|exitcode|closing signal|Signals?\.?SIG|death signal"
    r"|\b(?:shutting down|cleaning up|terminating|Aborting|aborted|step aborted|CANCELLED|worker group)\b"
    r"|(?:connection|socket)s? [^\n]{0,24}?(?:closed|reset|lost)|closed by (?:remote )?peer|reset by peer"
    r"|[Bb]roken pipe|(?:[Ss]ocket |to )(?:recv|send)\b|TCPStore|Failed to execute operation|terminate called"
    r"|while polling|is now going to abort|may now fail|because of|previous error|see (?:above|the log)"
    r"|[Tt]imed? ?out waiting|returned error$|returning error|(?:triggered|raised) an exception"
    r"|still waiting for|\b(?:actor|worker process) (?:is dead|has died|died)\b|Logging error"
    r"|(?:^|: )[\w-]+ in file \S+ at line \d+$"
    r"|^\s*(?:(?:Type|Status|Phase|State): +(?:Failed|Failure|Error)|Failed: +\d+)$"
    # A report that stands for the state of another process.
    r"|\b(?:child|another) (?:task|process|rank|worker)|no longer"
)
"""Words of a line that passes on what another one, or another process, has reported."""


class PrecedingError(NamedTuple):
    """A line before the end of a log that reports an error."""

    number: int
    """Its index among the lines."""
    message: str
    """What it says, without the severity and what stands before."""
    is_consequence: bool
    """True if its words are those of a failure that is passed on."""
    is_stated: bool
    """True if other words announce it as the reason."""


def preceding_errors(lines: Sequence[str]) -> tuple[PrecedingError, ...]:
    """Return the errors that the log reports after its last sign of work, oldest first.

    Lines of tracebacks and of stacks are left out: they are read as such. No line has the label of a rank.
    """
    begin = max(0, len(lines) - MAX_LINES)
    reported: list[PrecedingError] = []
    announced, announcement = False, ""
    for number, line in _outside_tracebacks(lines, begin):
        text = line[:MAX_LINE_CHARS].rstrip()
        if _COUNTS_WORK.search(text) and not error_message(text):
            reported.clear()
            announced = False
        if bar := _PROGRESS_BAR.match(text):
            reported.clear()
            text = text[bar.end() :]
        is_stated = announced or bool(_STATED.search(text))
        message = f"{announcement}{text.strip()}" if is_stated else _message_of(text)
        announced = bool(_ANNOUNCES.search(text))
        announcement = f"{text.strip()} " if text.rstrip(" :").endswith("ranks") else ""
        if message and not announced:
            message = _help_text(lines, number) or message
            passes_on = bool(_CONSEQUENCE.search(text)) or not (
                _FAILS.search(text) or _ENDED.search(text) or _STALLS.search(text)
            )
            reported.append(PrecedingError(number, message, passes_on and not is_stated, is_stated))
        elif is_at_work([text]) and not _FAILS.search(text):
            reported.clear()
    of_log = [e for e in reported if not introduces_paste(lines, e.number)]
    return tuple(_with_printed_log(lines, of_log))


def _with_printed_log(
    lines: Sequence[str], reported: Sequence[PrecedingError]
) -> Iterator[PrecedingError]:
    """Yield the errors, the last of another program's log as the reason: a script ends at its last error."""
    reasons: dict[int, int] = {}
    section: tuple[str, int] | None = None
    for error in reported:
        for number in range(error.number, max(-1, error.number - MAX_HELP_LINES), -1):
            if head := _PRINTS_LOG.match(lines[number].rstrip()):
                section = (head["prefix"].rstrip(), number)
                break
        else:
            section = None
        if section is None or error.number == section[1]:
            continue
        rest = lines[error.number].removeprefix(section[0])
        if rest.startswith("  ") and not (error.is_consequence or _ENDED.search(rest)):
            reasons[section[1]] = error.number
    last = set(reasons.values())
    for error in reported:
        yield (
            error._replace(is_stated=True, is_consequence=False) if error.number in last else error
        )


def final_report(lines: Sequence[str], errors: Sequence[PrecedingError]) -> PrecedingError | None:
    """Return the error with which the log ends; None if more follows than the consequences of an error, or
    words of a program that has done its work."""
    if not errors or work_over_line("\n".join(lines)):
        return None
    last_number = errors[-1].number
    if len(lines) - 1 - last_number > MAX_HELP_LINES or any(
        map(_shows_progress, lines[last_number + 1 :])
    ):
        return None
    first_number, loose_lines = last_number, 0
    numbers = {e.number for e in errors}
    for number in range(last_number, errors[0].number - 1, -1):
        if number in numbers:
            first_number, loose_lines = number, 0
        elif _shows_progress(lines[number]):
            loose_lines += 1
            if loose_lines > MAX_LOOSE_LINES:
                break
    if is_over(lines, first_number):
        return None
    block = [e for e in errors if e.number >= first_number]
    own_errors = [
        e
        for e in block
        if e.is_stated
        or (
            not reports_task_end(lines[e.number])
            and (not e.is_consequence or _ENDED.search(lines[e.number]))
        )
    ]
    attempts = [
        e for e in own_errors if _ATTEMPT.search(e.message) and not error_message(lines[e.number])
    ]
    if len(attempts) == len(own_errors) < 2:
        return None  # peers that end before others leave such words, and a try may be followed by another
    # What one process says of its own failure tells more than what another reports of its end.
    reasons = [e for e in own_errors if not _ENDED.search(lines[e.number])]
    severe = [e for e in reasons if not _is_plain_warning(lines[e.number])]
    return next(iter([e for e in block if e.is_stated] or severe or reasons or own_errors))


def _is_plain_warning(line: str) -> bool:
    """Return True if the line is a record of a warning; NCCL's are about calls that failed."""
    warning = _WARNING.search(line[:300])
    return warning is not None and not warning[0].startswith("NCCL")


def _shows_progress(line: str) -> bool:
    """Return True if a line after an error is no more of it, and not what its callers return."""
    text = line[:MAX_LINE_CHARS].rstrip()
    if is_survived(text) or _ADJUSTS.search(text) or _MENDED.search(text):
        return True
    is_more = not text.strip() or _PASSED_ON.search(text) or _DETAIL.match(text)
    return not is_more and bool(progress_lines([text]))


def is_over(lines: Sequence[str], number: int) -> bool:
    """Return True if one of the lines just before says that the work is done."""
    before = [line for line in lines[max(0, number - 8) : number] if line.strip()][-3:]
    return any(work_over_line(line) for line in before)


def likely_reason(
    reasons: Sequence[LoggedReason], end: int, *, or_after: bool = True
) -> LoggedReason | None:
    """Return the error that most likely led to an end at the line ``end`` of the same file; None if there is
    none.

    It is the first of the last block of errors before it, or of those right after it: native code may write
    later than the program that it served. What the log itself calls the reason comes first; words that only
    pass a failure on count if there are no others. Without ``or_after`` only what is called the reason counts
    after the end.
    """
    before = _block([r for r in reversed(reasons) if _line(r) < end], end)[::-1]
    after = _block([r for r in reasons if _line(r) > end and (or_after or r.is_stated)], end)
    block = [*before, *after]
    stated = [r for r in block if r.is_stated]
    return next(iter(stated or [r for r in block if not r.is_consequence] or before), None)


def _block(reasons: Sequence[LoggedReason], end: int) -> list[LoggedReason]:
    """Return those that stand close to each other, the first of them close to the line ``end``."""
    block: list[LoggedReason] = []
    for reason in reasons:
        if abs(_line(reason) - (_line(block[-1]) if block else end)) > MAX_GAP_LINES + 1:
            break
        block.append(reason)
    return block


def _line(reason: LoggedReason) -> int:
    return reason.speaker.place.line


def _message_of(line: str) -> str:
    """Return the message of a line that reports an error or a warning of one; "" if it reports none."""
    if _DETAIL.match(line) or is_survived(line) or _ADJUSTS.search(line):
        return ""
    if message := error_message(line):
        return _HEADER.sub("", message)
    if native := _NATIVE_STACK.match(line):
        return line[native.end() :].strip()
    if _WAITS.search(line) or _STALLS.search(line) or _ENDED.search(line):
        return line.strip()
    warning = _WARNING.search(line[:300])
    by_nccl = warning is not None and warning[0].startswith("NCCL")
    if _LESSER.search(line[:200]) or not (by_nccl or _FAILS.search(line)):
        return ""
    message = line[warning.end() :].strip(" :-]|>\t") if warning is not None else line.strip()
    message = _HEADER.sub("", message)
    # What ends in a colon only announces what follows.
    return message if len(message.split()) >= MIN_WORDS and not line.endswith(":") else ""


def _help_text(lines: Sequence[str], number: int) -> str:
    """Return the sentence that the line begins or belongs to, with the names and values below it, if it
    stands between two rules as a text for people does; else ""."""
    above = range(number - 1, max(-1, number - MAX_HELP_LINES), -1)
    below = range(number + 1, min(len(lines), number + MAX_HELP_LINES))
    begin = next((n for n in above if _RULE.search(lines[n])), None)
    end = next((n for n in below if _RULE.search(lines[n])), None)
    if begin is None or end is None:
        return ""
    body = [line.strip() for line in lines[begin + 1 : end]]
    sentences = re.split(r"(?<=[.:])\s+(?=[A-Z])|(?<=:)\s*$", " ".join(body))
    line = lines[number].strip()
    sentence = next((s for s in sentences if line[:40] in s), line)
    named = [text for text in body if _NAMED_VALUE.match(text)][:4]
    return "; ".join([sentence.strip(), *(" ".join(text.split()) for text in named)])[:400]


def _outside_tracebacks(lines: Sequence[str], begin: int) -> Iterator[tuple[int, str]]:
    """Yield the lines from ``begin`` on with their indices, without those of tracebacks."""
    in_traceback = False
    for number in range(begin, len(lines)):
        line = lines[number]
        if "Traceback (most recent call last)" in line:
            in_traceback = True
            continue
        if in_traceback:
            # The exception's own line ends it; frames and their source are indented.
            body = re.sub(r"^(?:\[[^\]\n]{1,60}\]:?|\([^)\n]{1,60}\)|>) ?", "", line)
            if body.startswith(("  ", "\t")) or not body.strip():
                continue
            in_traceback = False
            continue
        yield number, line
