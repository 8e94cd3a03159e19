"""Output that may follow the traceback of a fatal exception, and output that shows that the process went on.

Python's interpreter prints an uncaught exception last; only native code, atexit handlers and launchers write
after it. But buffered standard output is written only then: up to the buffer's size, lines after a traceback
prove nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice, takewhile

from allaboard.analysis.log_ends.error_records import line_kind

MAX_BUFFERED_CHARS = 16_384
"""Characters that a process may still write when it exits: Python's text layer and its 8 KiB buffer."""
WENT_ON_DOUBT = "its process, or another one that writes to this log, went on"
"""Beginning of the doubt that output followed which was in no buffer."""
OTHER_THREAD_DOUBT = "it ended a thread other than the main one, and the process went on"
"""Doubt about the traceback of a thread."""
LOGGED_DOUBT = "a logger wrote it, so it was caught"
"""Doubt about a traceback that follows a logger's record."""
STREAM_KIND_CHARS = 24
"""Leading characters by which two lines are output of the same kind."""
MAX_SCRIPT_LINES = 3
"""Lines that a batch script may write after its launcher failed: a date, a duration, that it has finished."""
_LAUNCHER_FAILURE = re.compile(
    r"^(?:srun: error: |={20,}$|mpirun (?:noticed|detected)|Primary job)[^\n]*", re.MULTILINE
)
_TRAINING_OVER = re.compile(
    r"\btraining (?:(?:is|has|was|run) )?(?:been )?(?:successfully )?(?:complet|finish|done\b|over\b)"
    r"|\b(?:finished|completed|done) training\b|`Trainer\.fit` stopped: `max_|\bLoss for final step\b",
    re.IGNORECASE,
)
_WORK_OVER = re.compile(
    r"\b(?:done|finished|completed?|over|bye)\W*$"
    r"|\b(?:run|job|fit|script|program|experiment|all (?:epochs|steps|tasks))\b[^\n]{0,30}"
    r"\b(?:finished|completed?|done|over)\b"
    r"|\bexit(?:ing|ed)? (?:normally|cleanly|with (?:code|status) 0)\b|`Trainer\.fit` stopped: `max_",
    re.IGNORECASE,
)
_PART_OF_WORK = re.compile(
    r"checkpoint|\bsav(?:e|ed|ing)\b|\bepoch\b|\bstep\b|load|batch|valid|eval|compil|download|init|restor"
    r"|warm|prepar|connect|dataset|setup|barrier|sync",
    re.IGNORECASE,
)
"""Words of what a training does many times, or before it begins."""
_FAILURE_WORDS = re.compile(
    r"error|fail|abort|exception|traceback|killed|not |n't |unsuccess", re.IGNORECASE
)
_TRAINING = re.compile(r"^[^\n]{0,200}?\b(?:loss|epoch|step)\b", re.IGNORECASE | re.MULTILINE)
_EPILOGUE = re.compile(
    r"\s*$|[ \t]"  # more of a message
    r"|\d+ (?:successful operations|derived errors ignored)\.|ClusterSpec\(|Note that these values may be"
    # CUDA's and NCCL's messages have several lines.
    r"|CUDA kernel errors might|For debugging consider|Compile with `TORCH_USE|Device-side assert"
    r"|nccl\w+Error:|Last error:|Search for `cuda"
    r"|GPU device may be out of range|(?:\[[\d :.-]+\] )?\S+:\d+:\d+ \[\d+\] (?:\S+:\d+ )?NCCL "
    # So have TensorFlow's, and gRPC's below them.
    r"|:[A-Z_]{2,24}:|=== Source Location Trace|external/\S+:\d+$"
    r"|Additional GRPC error information|:?\{\"created\":|RPC: /"
    r"|Hint: If you want to see a list of allocated tensors|If the cause is memory fragmentation|\d+ "
    r"(?:successful operations|derived errors ignored)\."
    # Native code, and the interpreter, at the end.
    r"|terminate called|Fatal Python error|Current thread 0x|Thread 0x|Extension modules:|Aborted"
    r"|Segmentation|Bus error|Killed|Terminated|Exception ignored|Error in (?:sys\.excepthook|atexit)"
    r"|sys:1: |\S+:\d+: \w*Warning"
    r"|\*\*\* |(?:\[rank\d+\]:)?\[?[WIEF]\d{3,4} \d\d:\d\d|(?:\[rank\d+\]:)?\[[WIEF] \w+\.cpp"
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]*: [WIEF] |wandb: |swig/python|\w+Error\b|\"\"\""
    # The next of a chain of exceptions, and the end of a pasted block.
    r"|ray::[\w.<>]{1,200}\(\) \(pid=|During handling of the above exception"
    r"|The above exception was the direct cause|(?:```|~~~)\w*\s*$"
    r"|Exception raised from |frame #\d|For simplicity, JAX has removed its internal frames"
    # Launchers.
    r"|(?:srun|slurmstepd|salloc|sbatch|mpirun|mpiexec|prterun|orterun|make|bash|sh)(?:\[\d+\])?: "
    r"|[-=*~#]{10,}"
    r"|Primary job|a non-zero exit code|(?:mpirun|prterun|mpiexec|Open MPI)\b|the job to be terminated"
    r"|\[[\d ,:-]+\](?: \[\w+\])? (?:\[launch\.py|torch\.distributed|(?:ERROR|WARNING) torch\.distributed)"
    r"|Process \d+ exit with status code|Terminating remaining workers|\[rank: \d+\] Child process with PID"
    r"|\S+ exited with code \d|Aborting on container exit"
    r"|Failures:|Root Cause|\S+ FAILED$|\[\d+\]:$|ERROR:torch\.distributed|WARNING:torch\.distributed"
    r"|.{0,60}launch\.py:\d+|command terminated with|exit(?: code|ed|\w* status)\b"
)
_ENDED_WELL = re.compile(
    r"\b(?:finish(?:ed)?|complet(?:ed?|ion)|done|success(?:ful|fully)?|all good|saved)\b",
    re.IGNORECASE,
)
_LAUNCHER_REPORT = re.compile(
    r"srun: error: \S+: tasks? [\d,-]+: (?:Exited with exit code|[A-Z])"
    r"|(?:mpirun|prterun|mpiexec) (?:noticed that process|detected that one or more processes exited)"
)
"""Report of a launcher that a process failed; the lines after it are from the script around it."""
_LAUNCHER_REPORT_LINE = re.compile(f"^(?:{_LAUNCHER_REPORT.pattern})", re.MULTILINE)
_LOG_RECORD = re.compile(
    r"(?!\[?[WEF]\d{4} |.* NCCL WARN ).*\b(?:ERROR|WARN|WARNING|CRITICAL|EXCEPTION)\b"
)
"""A record of a logger; the traceback that it gets as ``exc_info`` is written right after it."""


_HEAD = "Traceback (most recent call last):"
_LOGGED_ERROR = re.compile(r"[^\n]{0,90}?(?<![\w=-])(?:ERROR|CRITICAL|FATAL)\b")


def progress_lines(later_lines: Iterable[str]) -> tuple[str, ...]:
    """Return the lines after a traceback that look like output of a program at work."""
    program_lines = takewhile(lambda line: not _LAUNCHER_REPORT.match(line), later_lines)
    return tuple(line for line in program_lines if not _EPILOGUE.match(line))


def has_ended_well(output_lines: tuple[str, ...]) -> bool:
    """Return True if the last line says that the work is done, or the lines exceed what a buffer can hold."""
    if not output_lines:
        return False
    return (
        bool(_ENDED_WELL.search(output_lines[-1]))
        or sum(map(len, output_lines)) > MAX_BUFFERED_CHARS
    )


def is_same_stream(earlier_lines: Iterable[str], later_lines: Iterable[str]) -> bool:
    """Return True if lines after a traceback are of a kind that was also written before it.

    Output that was buffered until the process exited would not be on both sides of the traceback.
    """
    earlier_kinds = {line_kind(line, STREAM_KIND_CHARS) for line in earlier_lines}
    return any(line_kind(line, STREAM_KIND_CHARS) in earlier_kinds for line in later_lines)


def trains_on_after(text: str, message: str, min_lines: int) -> bool:
    """Return True if a training goes on after the last place of a message in this text.

    It goes on if at least ``min_lines`` lines follow that are about loss, epoch or step.
    """
    position = text.rfind(message)
    if position < 0:
        return False
    return sum(1 for _ in islice(_TRAINING.finditer(text, position), min_lines)) == min_lines


def is_training(lines: Iterable[str], min_lines: int) -> bool:
    """Return True if at least ``min_lines`` of the lines are about loss, epoch or step."""
    return sum(1 for _ in islice(filter(_TRAINING.match, lines), min_lines)) == min_lines


def training_over_line(text: str) -> str:
    """Return the last line of the text if it says that the training has finished normally, else ""."""
    tail = text[-MAX_BUFFERED_CHARS:].rstrip()
    last_line = tail.rpartition("\n")[2]
    if not _TRAINING_OVER.search(last_line):
        return ""
    failures = list(_LAUNCHER_FAILURE.finditer(tail))
    # A batch script's own last words come after a launcher that failed, too.
    script_lines = progress_lines(tail[failures[-1].end() :].split("\n")) if failures else ()
    return last_line.strip()[:80] if not failures or len(script_lines) > MAX_SCRIPT_LINES else ""


def work_over_line(text: str) -> str:
    """Return the last line of a member's log if it says that the member's work is done, else ""."""
    last_line = text[-MAX_BUFFERED_CHARS:].rstrip().rpartition("\n")[2].strip()[:200]
    if _FAILURE_WORDS.search(last_line):
        return ""
    is_over = _TRAINING_OVER.search(last_line) or (
        _WORK_OVER.search(last_line) and not _PART_OF_WORK.search(last_line)
    )
    return last_line[:80] if is_over else ""


def launcher_reports_failure(text: str) -> bool:
    """Return True if a launcher reports that one of its processes failed."""
    return _LAUNCHER_REPORT_LINE.search(text) is not None


def without_logged_tracebacks(lines: Sequence[str]) -> list[str]:
    """Return the lines with those of tracebacks that follow a logger's record of an error left empty: they
    are part of that record."""
    remaining_lines = list(lines)
    number = 1
    while number < len(lines):
        if not (lines[number].startswith(_HEAD) and _LOGGED_ERROR.match(lines[number - 1])):
            number += 1
            continue
        end = number + 1
        while end < len(lines) and lines[end][:1] in (" ", "\t", ""):
            end += 1
        remaining_lines[number : end + 1] = [""] * len(remaining_lines[number : end + 1])
        number = end + 1
    return remaining_lines


def is_logged_traceback(previous_line: str) -> bool:
    """Return True if the line before a traceback is a logger's record, so that the exception was caught."""
    return bool(_LOG_RECORD.match(previous_line))
