"""Records of an error in the log of any program, recognised by their form, and waits that a log repeats.

A program whose words nobody here knows still marks its errors as such: by a severity before the message
(glog, abseil, Python's, Go's and Java's loggers), or by ``PROGRAM: error:``. A program that waits for ever
often writes one line again and again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_SEVERITY = re.compile(
    # glog, abseil and c10, also behind the prefix of a rank or of a launcher
    r"^(?:\S+ ){0,3}?(?:\[?\w+\]?:)?\[?[EF](?:\d{3,4} \d\d:\d\d:\d\d| \w+\.(?:cpp|cc|cu|h):)[^\]]*\]"
    r"|^(?:\S+ ){0,4}?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*Z?:? [EF] \S+"
    r"|^[^\n]{0,90}?(?<![\w=-])\[?(?:ERROR|CRITICAL|FATAL|SEVERE|PANIC)\b(?![=/_-])"
    r"|^[^\n]{0,90}?(?<![\w=-])[A-Z]{2,12}_(?:ERROR|FATAL)(?:_LOG)?[|:\]]"
    r"|^[^\n]{0,90}?\b[\w./-]{2,60}\.(?:c|cc|cpp|cu|go|rs):\d+\]? {1,4}[Ee]rror: "
    r"|^[^\n]{0,120}?\b(?:level|lvl)\"?[=:] ?\"?(?:error|eror|fatal|critical|crit)\b"
    r"|^[\w./-]{2,40}(?:\[\d+\])?: (?:fatal )?error: "
    r"|^(?:fatal|error): "
    # The status of gRPC and XLA, which their users print with its message.
    r"|^(?:ERROR: )?(?:[\[(]?[\w.-]{1,80}[\])]?:? )?(?=(?:INTERNAL|UNAVAILABLE|UNKNOWN|ABORTED"
    r"|DATA_LOSS|CANCELLED|DEADLINE_EXCEEDED"
    r"|FAILED_PRECONDITION|RESOURCE_EXHAUSTED|INVALID_ARGUMENT|NOT_FOUND|PERMISSION_DENIED"
    r"|UNAUTHENTICATED): )"
    # The same in TensorFlow's list of several errors, and of an operation that failed.
    r"|^(?:\s{0,8}\(\d{1,3}\) |[^\n]{0,60}: W [^\n]{0,90}op_kernel\.cc:\d+\] (?:OP_REQUIRES failed at \S+"
    r" : )?)(?=(?:INTERNAL|UNAVAILABLE|UNKNOWN|ABORTED|DATA_LOSS|Internal|Unavailable|Unknown|Aborted"
    r"|Data loss|Deadline exceeded|Failed precondition|Resource exhausted|Invalid argument|Not found): )"
)
"""Matches the severity before a message, with its time and origin."""
_GOES_ON = re.compile(
    r"(?<!please )\b(?:re-?try(?:ing)?|tr(?:y|ies|ying) again|reattempt|fall(?:s|ing)? back|fallback"
    r"|ignor(?:e|ed|es|ing)|skip(?:s|ped|ping)?|proceed(?:s|ing)?|continu(?:e|es|ing)|instead|unstuck"
    r"|may be stuck|recovered|deprecated|not a failure|disabl(?:ed|ing)"
    r"|0 errors?|no errors?|errors?[:=] ?0)\b",
    re.IGNORECASE,
)
"""Words of a message after which its program goes on."""
_ATTEMPT = re.compile(
    r"\bfailed to connect\b|\b(?:connect(?:ion)?|dial)\b[^\n]{0,60}\b(?:refused|timed out|failed)\b"
    r"|\bcannot (?:reach|connect)\b",
    re.IGNORECASE,
)
"""A try to connect: transports write each, and go on trying."""
_BATCH_SYSTEM = re.compile(
    r"^\s*slurmstepd\b(?!: error: [a-z][\w/-]{2,30}: )"
    r"|^\s*(?:srun|sbatch|salloc)\b[^\n]*?(?:\btasks? [\d,-]+:|CANCELLED|Killed|Terminated|\boom)"
)
"""The end of a task, as a batch system reports it: who reports it has mostly not caused it. And what Slurm's
daemon of a step says, which mostly goes on without a folder or a limit; not what a plugin in it says."""
_HARMLESS = re.compile(
    r"Unable to register cu\w+ factory|failed call to cuInit|computation_placer already registered"
    r"|Unable to load \w+ plugin|Could not load dynamic library|libcuda reported version"
    r"|spank: \S+: Plugin file not found|TensorRT(?!-LLM)|NUMA node|may not be enabled"
)
"""Errors that TensorFlow and XLA write at the start of healthy processes."""
_WAIT = re.compile(
    r"\b(?:wait(?:ing|s)?|re-?trying|tr(?:ies|ying) again|not (?:yet )?ready|still (?:connecting|pending)"
    r"|no response|(?:re-?)?try (?:again|up to|in|after)|(?:retries|attempts) (?:left|remaining))\b",
    re.IGNORECASE,
)
_WAITS_BY_RIGHT = re.compile(r"checkpoint|download|\bGPU queue\b|compil", re.IGNORECASE)
"""Words of waits that healthy members repeat: an evaluator's for a checkpoint, for example."""
_AT_WORK = re.compile(
    r"\b(?:(?<!data )loss|epoch|step|iter(?:ation)?|it/s|batch|throughput)\b", re.IGNORECASE
)
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+")
_AWAITED = re.compile(r"\b(?:to|for|from|with|reach) rank:? (?P<rank>\d{1,6})\b", re.IGNORECASE)
"""The rank for which a line waits."""
MAX_AWAITED = 4
"""Ranks for which one member waits at a time."""
MIN_WORDS = 3
"""Words of a message that say something."""
MIN_REPETITIONS = 3
"""Lines of one kind that make a repeated wait."""
MAX_FINAL_LINES = 12
"""Lines at the end of a log among which a repeated wait is looked for."""
MAX_KIND_CHARS = 160
"""Leading characters by which two lines are of one kind, all numbers alike."""


_RELAYED = re.compile(
    r"[^\n]{0,80}?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,\d]*Z? \[?(?:INFO|DEBUG|TRACE|NOTICE)\b"
)
"""A harmless record of another program, passed on by one that calls all of them errors."""


def error_message(line: str) -> str:
    """Return the message of a record of an error; "" if the line is none, or its program goes on."""
    match = _SEVERITY.match(line)
    if match is None or goes_on_after(line):
        return ""
    message = line[match.end() :].strip(" :-]|>\t")
    if _RELAYED.match(message):
        return ""
    return message if len(message.split()) >= MIN_WORDS else ""


def goes_on_after(line: str) -> bool:
    """Return True if the line says that its program goes on, or is known not to end one."""
    return is_survived(line) or bool(_ATTEMPT.search(line)) or reports_task_end(line)


def reports_task_end(line: str) -> bool:
    """Return True if a batch system reports the end of a task in the line."""
    return bool(_BATCH_SYSTEM.search(line))


def is_survived(line: str) -> bool:
    """Return True if the line itself says that its program goes on, or is one of healthy programs."""
    return any(pattern.search(line) for pattern in (_GOES_ON, _HARMLESS))


def is_at_work(lines: Iterable[str]) -> bool:
    """Return True if one of the lines is about the progress of a training."""
    return any(_AT_WORK.search(line) for line in lines)


def repeated_wait(lines: list[str]) -> int | None:
    """Return the index of the last line of a wait with which a log ends; None if it ends otherwise."""
    final = [n for n, line in enumerate(lines) if line.strip()][-MAX_FINAL_LINES:]
    if is_at_work(lines[n] for n in final):
        return None
    waits = [n for n in final if _is_wait(lines[n])]
    if not waits:
        return None
    # A line of another kind after the last of them shows that it ended.
    kinds_until = {line_kind(lines[n]) for n in final if n <= waits[-1]}
    later_kinds = [line_kind(lines[n].rstrip()) for n in final if n > waits[-1]]
    if later_kinds and any(kind.startswith(later_kinds[-1]) for kind in kinds_until):
        later_kinds.pop()  # cut by who pasted it
    if not kinds_until.issuperset(later_kinds):
        return None
    kinds = Counter(line_kind(lines[n]) for n in waits)
    return waits[-1] if kinds[line_kind(lines[waits[-1]])] >= MIN_REPETITIONS else None


def awaited_ranks(lines: list[str], number: int) -> tuple[int, ...]:
    """Return the ranks that the last lines of a log, of the kind of the line ``number``, wait for; empty if
    they name none, or more than can be told apart from a count."""
    kind = line_kind(lines[number])
    final = lines[max(0, number - MAX_FINAL_LINES) : number + 1]
    matches = (_AWAITED.search(line) for line in final if line_kind(line) == kind)
    ranks = sorted({int(match["rank"]) for match in matches if match is not None})
    return tuple(ranks) if len(ranks) <= MAX_AWAITED else ()


def _is_wait(line: str) -> bool:
    return bool(_WAIT.search(line) or _ATTEMPT.search(line)) and not _WAITS_BY_RIGHT.search(line)


def line_kind(line: str, max_chars: int = MAX_KIND_CHARS) -> str:
    """Return the beginning of the line with all numbers alike: lines of one kind have the same."""
    return _NUMBERS.sub("0", line)[:max_chars]
