"""The last line of an exception without its traceback: what is known of its cause all the same. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from allaboard.analysis.failures.known_errors import known_remedy
from allaboard.analysis.failures.library_errors import A_PROCESS, explain_library_error
from allaboard.analysis.failures.out_of_memory import is_gpu_memory, is_out_of_memory
from allaboard.analysis.log_ends.advice_by_words import advice_by_words
from allaboard.analysis.log_ends.program_advice import program_advice
from allaboard.analysis.log_ends.start_advice import start_advice
from allaboard.analysis.log_ends.stated_remedy import stated_remedy
from allaboard.facts import Raised

_EXCEPTION = re.compile(
    r"(?:^|[\s\"'`])(?:[A-Za-z_]\w{0,80}\.){0,12}(?P<type>[A-Z]\w{0,80}(?:Error|Exception)|Exception)"
    r"(?:\([\w.]{1,80}\)| \(see above for traceback\))?:\s{1,4}(?P<message>\S.*)"
)
_STATUS = re.compile(
    r"(?:^|OP_REQUIRES failed at [\w./]{1,120}:\d+ : |StartAbort |Aborting \w{1,40} with )"
    r"(?P<code>Out of range|OUT_OF_RANGE|Invalid argument|INVALID_ARGUMENT|Not found|NOT_FOUND|Internal"
    r"|INTERNAL|Failed precondition|FAILED_PRECONDITION): (?:\[_Derived_\] ?)?(?P<message>\S.*)"
)
"""What TensorFlow's runtime writes of an operation that failed, by the name of the error's status."""

_GPU_MEMORY = (
    "on that host: nvidia-smi   # does another program hold memory of that GPU? Else need less: a smaller "
    "batch, gradient checkpointing, sharding; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True against "
    "fragmentation"
)
_HOST_MEMORY = (
    "on that host: free -g; dmesg -T | grep -i oom   # need less: fewer workers, smaller batches"
)
_ABOVE = (
    "get the traceback above this line: it names the line of the code; then the logs of all members: "
    "allaboard diagnose LOG..."
)
"""What to do about an exception of which only the last line is there."""
COLLECT = "collect the logs of all members and of the launcher: allaboard diagnose LOG..."
"""What to do next where nothing more is known."""


class BareException(NamedTuple):
    """What an exception means of which only the last line is known."""

    says: str
    """The cause, as a sentence about "a process"."""
    fix: str
    """What to do next."""


def explain_bare_exception(line: str) -> BareException | None:
    """Return the known cause of the exception in this line; None if there is none, or its words are new."""
    match = _EXCEPTION.search(line)
    status = _STATUS.search(line) if match is None else None
    if match is not None:
        error_type, message = match["type"], match["message"].rstrip(' "`')
    elif status is not None:
        words = status["code"].replace("_", " ").title()
        error_type, message = f"{words.replace(' ', '')}Error", status["message"].rstrip()
    else:
        return None
    raised = Raised(type=error_type, message=message, raised_at=0.0, where=None, frames=())
    if remedy := known_remedy(raised):
        return BareException(
            f"{A_PROCESS} ended with {raised.type}: {remedy.cause or message[:160]}", remedy.fix
        )
    failure = explain_library_error(raised)
    if failure is None or failure.is_generic:
        return None
    return BareException(failure.summary(A_PROCESS), failure.fix)


def advice_of_line(line: str, following: Sequence[str] = ()) -> str:
    """Return what to do about the exception in this line, or about what it reports in other words; the lines
    ``following`` may say it."""
    match = _EXCEPTION.search(line[:1000])
    message = match["message"] if match is not None else line[:1000]
    raised = Raised(type=match["type"] if match is not None else "", message=message, raised_at=0.0)
    if is_out_of_memory(raised):
        return _GPU_MEMORY if is_gpu_memory(raised) else _HOST_MEMORY
    if explained := explain_bare_exception(line):
        return explained.fix
    if of_program := program_advice(line):
        return of_program
    if stated := stated_remedy(message) or stated_remedy("\n".join(following)):
        return f"do what it says: {stated!r}; if that does not help, {COLLECT}"
    last = COLLECT if match is None else _ABOVE
    first = start_advice(message) or advice_by_words(message)
    return f"{first}; then {last}" if first else last
