"""Last words of native code, shells and launchers, for a log in which nothing else explains the end."""

from __future__ import annotations

import re
import signal
from itertools import takewhile
from typing import NamedTuple

import msgspec

from allaboard.analysis.failures.bare_exceptions import advice_of_line, explain_bare_exception
from allaboard.analysis.failures.signal_advice import signal_advice
from allaboard.analysis.log_ends.advice_by_words import advice_by_words
from allaboard.analysis.log_ends.error_records import (
    MIN_REPETITIONS,
    awaited_ranks,
    error_message,
    is_at_work,
    is_survived,
    repeated_wait,
)
from allaboard.analysis.log_ends.final_errors import (
    MAX_LINE_CHARS,
    MAX_LINES_TO_END,
    final_error,
    final_sentence,
    stated_failure,
    states_failure,
)
from allaboard.analysis.log_ends.help_texts import final_help_text, help_text_advice
from allaboard.analysis.log_ends.named_tasks import named_task
from allaboard.analysis.log_ends.post_traceback_output import (
    has_ended_well,
    is_same_stream,
    progress_lines,
    training_over_line,
    without_logged_tracebacks,
)
from allaboard.analysis.log_ends.program_advice import program_advice
from allaboard.analysis.log_ends.stated_remedy import stated_remedy
from allaboard.analysis.log_messages import speaker_rank, with_writer_host
from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.end_advice import (
    ASK_WHO_ENDED,
    ASK_WHO_KILLED,
    COLLECT_LOGS,
    READ_LOG,
    abort_advice,
    launcher_advice,
    record_advice,
    transport_advice,
    with_first_step,
)
from allaboard.diagnosis.wordings.end_lines import (
    ABORT_LINES,
    ABOUT_FAILURE,
    EXCEPTION_LINE,
    EXIT_CODE,
    IMAGE_PULLED,
    LAUNCHER_LINES,
    LESS_THAN_FATAL,
    MPI_ABORT_LINE,
    MPI_FRAME,
    MPI_HELP_FATAL,
    MPI_HELP_RULE,
    OVERWRITTEN_LINE,
    SIGNAL_LINE,
    SIGNAL_WORDS,
)
from allaboard.facts import Exhibit, Heard, Severity, Speaker, Testimony, Who
from allaboard.facts.signal_name import SHELL_SIGNAL_OFFSET
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD
from allaboard.formats.dumps.thread_dumps.stack_frames import without_source_lines

UNEXPLAINED_END = "LOG012"
"""The rule that reports these ends."""
ENDS_IN_ERROR = "the log ends in an error: "
"""Begins the sentence that quotes such a record."""
_WAIT_FIX = (
    "see who it waits for, and whether that runs: allaboard diagnose LOG... with the logs of all; while it "
    "waits, on its host: allaboard diagnose"
)
_LAUNCHER_ORDER = 2
"""Place of a launcher's or shell's error among the ends of one log; see `_End.order`."""
_EXCEPTION_ORDER = 3
"""That of an exception's last line."""
MAX_MPI_STACK_LINES = 16
"""Lines of the error stack of MPICH that are read after its first."""
MAX_LINES_ABOVE_HELP = 4
"""Lines above a help text of MPI, its rule among them, that may have the failure itself."""
MAX_ASKING_LINES = 3
"""Lines before a sentence about a failure that may say whom its program asked."""
MAX_MESSAGE_LINES = 6
"""Lines after an error's first that may say what is to be done about it."""
MAX_WRAPPED_LINES = 3
"""Lines between two frames of that stack that continue the one before."""
_FRAMEWORK_ERROR = re.compile(
    r"^(?:tensorflow\.python\.framework\.errors_impl|jaxlib\.(?:xla_extension|_jax)|jax\.errors)"
    r"\.\w{3,60}Error: "
)
"""The same of a framework, by its whole name, which nothing but an uncaught exception is written with."""
_CONNECT_FAILED = re.compile(
    r"[Ff]ailed to connect to remote host[^\n]{0,500}?\"target_address\":\"(?:ipv[46]:)?(?P<address>[^\"\s"
    r"]+)\"|(?:ipv[46]:)(?P<address2>[\w.\[\]%:-]+:\d+): Failed to connect to remote host: (?:Connection "
    r"refused|No route to host|Connection timed out)"
)
_AWAITED_HOST = re.compile(
    r"\b(?:to|for|from|reach|on) (?:the )?(?:host|node|worker|peer|pod|server|scheduler|master):? "
    r"'?(?P<name>[a-z][a-z0-9]*(?:[-.][\w.-]*)?\d[\w.-]*)",
    re.IGNORECASE,
)
"""Name of the member for which a line waits."""
_PREFIX = re.compile(r"^\S{0,60}? ?(?:\[[^\]\s]{1,40}\]:? ?)+|^\[[^\]\n]{1,60}\]:? ")
"""What a launcher or a collector puts before a line."""
_UNAVAILABLE = re.compile(r"UnavailableError|: UNAVAILABLE|DeadlineExceededError")
_STORE_GONE = re.compile(
    r"Failed to (?:check|get|set)[^\n]{0,80}on TCPStore, \(maybe TCPStore server has shut down too early"
    r"|TCPStore\.cpp:\d+\] \[c10d\] (?:sendBytes|recvValue|recvVector|recvBytes) failed on "
)
"""What NCCL's monitor in PyTorch and its store write each second once the store is gone (since 2.3)."""
STORE_GONE = (
    "the store of the job was gone while other ranks still ran: the process that served it (rank 0, or the "
    "launcher) had ended"
)
"""What such lines mean at the end of a log."""
_STORE_SERVER = re.compile(r"remote=\[(?:::ffff:)?(?P<host>[^\]\s]{1,255})\]:(?P<port>\d{1,5})")


class _End(NamedTuple):
    """What a line says of an end."""

    order: int
    """Its place among several of one log: the lowest says most."""
    says: str
    """The end, quoted."""
    fix: str
    """What to do next."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    if training_over_line(text):
        return None
    lines = without_source_lines(text.split("\n"))
    heard = (
        _refused_connection(exhibit, text, lines)
        or _last_words(exhibit, text, lines)
        or _lost_store(exhibit, text, lines)
        or _last_help_text(exhibit, lines)
        or _last_error(exhibit, text, lines)
        or _endless_wait(exhibit, lines)
        or _last_sentence(exhibit, text, lines)
    )
    return Testimony(heard=(heard,)) if heard is not None else None


def _last_words(exhibit: Exhibit, text: str, lines: list[str]) -> Heard | None:
    """Return the end that says most: an abort before a signal, that before a launcher's error."""
    begin = max(0, len(lines) - MAX_LINES_TO_END)
    final_numbers = [n for n in range(begin, len(lines)) if lines[n].strip()][-3:]
    # Of a traceback it is known whether it ended the process.
    has_no_traceback = TRACEBACK_HEAD not in text
    ends = []
    for number in range(begin, len(lines)):
        line = lines[number][:MAX_LINE_CHARS].rstrip()
        end = _describe_end(
            line,
            lines[number + 1 : number + MAX_MPI_STACK_LINES],
            is_last=number in final_numbers,
            has_no_traceback=has_no_traceback,
        )
        last_number = number
        if end is None and (help_text := _mpi_help(lines, number)):
            beginning, last_number = help_text
            end = _End(
                _LAUNCHER_ORDER,
                f"Open MPI reports an error and ends: {beginning[:200]}",
                COLLECT_LOGS,
            )
        # A launcher or shell whose program writes on after its error has not failed of it.
        may_output = end is None or end.order != _LAUNCHER_ORDER
        if (
            end is not None
            and "SIGTERM" in end.says
            and training_over_line("\n".join(lines[:number]))
        ):
            continue  # a pod that is taken down after its work
        if end is not None and end.order == _EXCEPTION_ORDER and is_at_work(lines[number + 1 :]):
            continue  # words of an exception that was caught
        if "kubelet" in line and any(map(IMAGE_PULLED.search, lines[number + 1 :])):
            continue
        if end is not None and _is_end(lines, last_number, may_output=may_output):
            ends.append((end.order, number, line.strip(), end))
    if not ends:
        return None
    _order, number, line, end = min(ends)
    return _heard(exhibit, number, line, end.says, end.fix)


def _last_error(exhibit: Exhibit, text: str, lines: list[str]) -> Heard | None:
    """Return the first of the records of errors with which the log ends."""
    if TRACEBACK_HEAD in text:
        # Of a traceback it is known whether it ended the process; a logger's is part of its record.
        lines = without_logged_tracebacks(lines)
        if any(TRACEBACK_HEAD in line for line in lines):
            return None
    number = final_error(lines)
    if number is None or MPI_ABORT_LINE.search(lines[number]):
        return None
    message = error_message(lines[number][:MAX_LINE_CHARS].rstrip())
    says = f"{ENDS_IN_ERROR}{message[:200]}"
    if explained := explain_bare_exception(message):
        says, fix = explained
    else:
        advice = advice_of_line(message, _rest_of_message(lines, number))
        fix = program_advice(lines[number]) or record_advice(message, exhibit.host) or advice
        fix = with_first_step(fix, message)
        if (transport := transport_advice(lines[number])) and not program_advice(lines[number]):
            fix = f"{transport}; then {fix}"
    return _heard(exhibit, number, lines[number].strip(), says, fix)


def _last_help_text(exhibit: Exhibit, lines: list[str]) -> Heard | None:
    """Return the first help text of Open MPI or PRRTE at the end of the log that reports a failure."""
    help_text = final_help_text(lines)
    if help_text is None or not _is_end(lines, help_text.last_line):
        return None
    above = lines[max(0, help_text.first_line - MAX_LINES_ABOVE_HELP) : help_text.first_line]
    if any(map(states_failure, above)):
        return None  # the text only tells what may lie behind that line
    says = f"MPI's launcher or library reports: {help_text.text[:200]}"
    line = lines[help_text.first_line].strip()
    return _heard(exhibit, help_text.first_line, line, says, help_text_advice(help_text))


def _last_sentence(exhibit: Exhibit, text: str, lines: list[str]) -> Heard | None:
    """Return the sentence with which the log ends, or else one within a short log, that something failed."""
    if TRACEBACK_HEAD in text:
        return None
    number, says = final_sentence(lines), "the log ends with"
    if number is None:
        number, says = stated_failure(lines), "the log says"
    if number is None:
        return None
    line = _with_next_line(lines, number)
    says = f"{says}: {line[:200]}"
    if explained := explain_bare_exception(line):
        heard = _heard(exhibit, number, line, *explained)
        return msgspec.structs.replace(heard, severity=Severity.WARNING)
    rest = _rest_of_message(lines, number)
    fix = program_advice(line) or record_advice(line, exhibit.host) or advice_of_line(line, rest)
    if fix.startswith(("collect ", "look at ")):
        # Whom it asked stands in the lines before, if the program says so.
        earlier_advice = (
            advice_by_words(x) for x in lines[max(0, number - MAX_ASKING_LINES) : number]
        )
        fix = "; then ".join([*[advice for advice in earlier_advice if advice][-1:], fix])
        fix = with_first_step(fix, line)
    heard = _heard(exhibit, number, line, says, fix)
    return msgspec.structs.replace(heard, severity=Severity.WARNING)


def _with_next_line(lines: list[str], number: int) -> str:
    """Return the line, with the next one that has words if it only announces that one by a colon."""
    line = lines[number].strip()
    if not line.endswith(":"):
        return line
    following = (
        _PREFIX.sub("", text) for text in lines[number + 1 : number + 1 + MAX_MESSAGE_LINES]
    )
    return f"{line} {next(filter(None, map(str.strip, following)), '')}".rstrip()


def _rest_of_message(lines: list[str], number: int) -> list[str]:
    """Return the lines after the one that reports an error which may belong to its message."""
    following = lines[number + 1 : number + 1 + MAX_MESSAGE_LINES]
    block = takewhile(lambda line: line.strip() and TRACEBACK_HEAD not in line, following)
    return [line.strip() for line in block]


def _endless_wait(exhibit: Exhibit, lines: list[str]) -> Heard | None:
    number = repeated_wait(lines)
    if number is None:
        return None
    line = lines[number].strip()
    says = f"the log ends in a wait that it repeats: {line[:200]}"
    awaited = awaited_ranks(lines, number)
    if len(awaited) > 1:
        says += f" (the same for {', '.join(map(str, awaited[:-1]))} and {awaited[-1]})"
    heard = _heard(exhibit, number, line, says, _WAIT_FIX, awaits=True)
    if not awaited:
        stated = stated_remedy(line[:MAX_LINE_CHARS])
        advice = (
            f"do what it says: {stated!r}"
            if stated
            else advice_by_words(line[:MAX_LINE_CHARS]) or _host_advice(line)
        )
        return (
            msgspec.structs.replace(heard, fix=f"{advice}; then {_WAIT_FIX}") if advice else heard
        )
    numbers = " and ".join(map(str, awaited))
    return msgspec.structs.replace(
        heard,
        about=tuple(Who(index=rank, rank=rank) for rank in awaited),
        fix=f"read the log of rank {numbers}: was it started, and does it run? Then {_WAIT_FIX}",
    )


def _host_advice(line: str) -> str:
    """Return what to do about the host that a line names without an address; "" if it names none."""
    match = _AWAITED_HOST.search(line)
    if match is None:
        return ""
    return f"read the log of {match['name']}: was it started, and does it run?"


def _lost_store(exhibit: Exhibit, text: str, lines: list[str]) -> Heard | None:
    """Return that the store of the job was gone while a rank still asked it, if the log ends so."""
    matches = list(_STORE_GONE.finditer(text))
    # At a normal end too, those that leave last write it once or twice.
    if len(matches) < MIN_REPETITIONS or not _is_end(
        lines, text.count("\n", 0, matches[-1].start())
    ):
        return None
    server = _STORE_SERVER.search(text)
    address = f" on {server['host']}" if server is not None else ""
    number = text.count("\n", 0, matches[0].start())
    return _heard(
        exhibit,
        number,
        lines[number].strip(),
        STORE_GONE,
        f"read the log of rank 0, or of the launcher{address}: how did it end?   # if it had only finished "
        "first: dist.barrier(); dist.destroy_process_group() as the last calls of every rank",
        awaits=True,
    )


def _refused_connection(exhibit: Exhibit, text: str, lines: list[str]) -> Heard | None:
    """Return the address at which nobody listened, if a session failed after it."""
    refusals = [m for m in _CONNECT_FAILED.finditer(text) if _UNAVAILABLE.search(text, m.end())]
    if not refusals or not _is_end(lines, text.count("\n", 0, refusals[-1].start())):
        return None
    match = refusals[-1]
    address = match["address"] or match["address2"]
    host, _, port = address.rpartition(":")
    number = text.count("\n", 0, match.start())
    return _heard(
        exhibit,
        number,
        lines[number].strip(),
        f"nobody listened at {address} when this member connected",
        f"start the task of {address} and read its log; from this host: nc -vz {host} {port}",
        awaits=True,
    )


def _heard(
    exhibit: Exhibit, number: int, line: str, says: str, fix: str, *, awaits: bool = False
) -> Heard:
    return Heard(
        rule=UNEXPLAINED_END,
        says=says,
        speakers=(
            Speaker(
                speaker_rank(line, exhibit.rank),
                line[:300],
                exhibit.place_of_line(number),
                exhibit.pid,
            ),
        ),
        fix=with_writer_host(fix, line),
        awaits=awaits,
        about=named_task(says),
    )


def _describe_end(
    line: str, following: list[str], *, is_last: bool, has_no_traceback: bool
) -> _End | None:
    """Return what the line says of an end, and what to do; None if it says nothing of one."""
    for pattern in () if LESS_THAN_FATAL.match(line) else ABORT_LINES:
        if match := pattern.search(line):
            what = next(g for g in match.groups() if g is not None)
            words = _abort_reason(following) or what.strip()
            return _End(0, f"a process aborted itself: {words[:160]}", abort_advice(line + words))
    if match := SIGNAL_LINE.search(line):
        signal_name = match["code"] or SIGNAL_WORDS[match["name"] or match["name2"]]
        return _End(
            1,
            f"a process was ended by {signal_name}: {line.strip()[:120]}",
            _signal_fix(signal_name),
        )
    if match := EXIT_CODE.search(line):
        ended_by = signal.Signals(int(match["code"]) - SHELL_SIGNAL_OFFSET)
        fix = ASK_WHO_KILLED if ended_by is signal.SIGKILL else READ_LOG
        return _End(1, f"a process was ended by {ended_by.name}: {line.strip()[:160]}", fix)
    if any(p.search(line) for p in LAUNCHER_LINES):
        return _End(
            _LAUNCHER_ORDER,
            f"the launcher or the shell reports an error: {line.strip()[:160]}",
            launcher_advice(line),
        )
    if is_last and (match := OVERWRITTEN_LINE.match(line)):
        name = SIGNAL_WORDS[match["name"]]
        fix = ASK_WHO_KILLED if name == "SIGKILL" else READ_LOG
        return _End(1, f"a process was ended by {name}: {line.strip()[:80]}", fix)
    if line.endswith("root error(s) found.") and following:
        line = (
            f"{line} {following[0].strip()}"  # TensorFlow lists several errors under one exception
        )
    elif line.endswith(":") and EXCEPTION_LINE.match(line):
        line = " ".join([line, *(part.strip() for part in following[:2])])  # as XGBoost's
    is_error = _FRAMEWORK_ERROR.match(line) or (is_last and EXCEPTION_LINE.match(line))
    # Who raises that it could not connect has given up.
    if is_error and has_no_traceback and not is_survived(line):
        if explained := explain_bare_exception(line):
            return _End(_EXCEPTION_ORDER, *explained)
        says = f"{ENDS_IN_ERROR}{line.strip()[:160]}"
        return _End(_EXCEPTION_ORDER, says, advice_of_line(line))
    return None


def _abort_reason(following: list[str]) -> str:
    """Return what the lines after an abort tell of its reason: C++'s, or the innermost frame of MPICH's
    stack."""
    for line in following[:2]:
        if line.strip().startswith("what():"):
            return line.strip().removeprefix("what():").strip()
    reason = ""
    wrapped_lines = 0
    for line in following:
        frame = MPI_FRAME.match(line)
        # A terminal wraps the arguments of a call, which stand first.
        wrapped_lines = 0 if frame is not None else wrapped_lines + 1
        if wrapped_lines > MAX_WRAPPED_LINES or not line.strip():
            break
        reason = (frame["why"] if frame is not None else "") or reason
    return reason


def _mpi_help(lines: list[str], number: int) -> tuple[str, int] | None:
    """Return the beginning of the text of Open MPI that tells in this line that the job ends, and its last
    line; None if there is none."""
    if not MPI_HELP_FATAL.search(lines[number]):
        return None
    above = range(number, max(-1, number - MAX_MPI_STACK_LINES), -1)
    below = range(number, min(len(lines), number + MAX_MPI_STACK_LINES))
    begin = next((n for n in above if MPI_HELP_RULE.match(lines[n].strip())), -1)
    end = next((n for n in below if MPI_HELP_RULE.match(lines[n].strip())), number)
    return (" ".join(" ".join(lines[begin + 1 : begin + 4]).split()), end) if begin >= 0 else None


def _is_end(lines: list[str], number: int, *, may_output: bool = True) -> bool:
    """Return True if nothing after the line shows that the program went on.

    Unless it ``may_output`` more (what was buffered until its end), any output shows that.
    """
    output = tuple(line for line in progress_lines(lines[number + 1 :]) if line.strip())
    if not may_output and not all(map(ABOUT_FAILURE.search, output)):
        return False
    return not has_ended_well(output) and not (
        output and is_same_stream(lines[max(0, number - MAX_LINES_TO_END) : number], output)
    )


def _signal_fix(signal_name: str) -> str:
    if signal_name == "SIGKILL":
        return ASK_WHO_KILLED
    if signal_name == "SIGTERM":
        return ASK_WHO_ENDED
    if signal_name == "SIGBUS":
        return signal_advice(signal.SIGBUS)
    return f"{READ_LOG}, ulimit -c unlimited leaves a core"


READER = LogReader(read=read_log)
