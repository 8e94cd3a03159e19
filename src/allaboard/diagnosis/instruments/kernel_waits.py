"""Processes that wait inside the kernel: its own report of a blocked task, `/proc/PID/stack`, and `ps`.

The report is that of Linux 2.6 to 6.12 (kernel/hung_task.c), the listing that of procps 3 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.kernel_wait_places import UNKNOWN_WAIT, find_kernel_wait
from allaboard.facts import Exhibit, Heard, Severity, Speaker, Testimony, Who

RULE_OF_WAITS = "LOG015"
"""The rule that reports these waits."""
MAX_WAITS = 64
"""Waits that are read of one exhibit."""
MAX_ROW_CHARS = 4000
"""Characters of a row of `ps`; what is longer is none."""
MAX_TRACE_LINES = 60
"""Lines of a trace."""
_SIGNS = (" blocked ", "[<", "PID", "ps -", " python")
"""One of these is in every text that has such a wait."""
_BLOCKED = re.compile(
    r"INFO: task (?P<name>[^\n]{1,64}?):(?P<pid>\d{1,9}) blocked (?:in I/O wait )?"
    r"for more than (?P<s>\d+) seconds"
)
_FUNCTION = re.compile(r"(?:^|\] |\s)\??\s*(?P<name>[A-Za-z_][\w.]{2,80})\+0x[0-9a-f]+/0x[0-9a-f]+")
_STACK_LINE = re.compile(
    r"^\[<[0-9a-f]+>\] (?P<name>[A-Za-z_][\w.]{1,80})(?:\+0x[0-9a-f]+/0x[0-9a-f]+)?"
)
_STACK_OF = re.compile(r"/proc/(?P<pid>\d{1,9})/(?:task/\d+/)?stack\b")
_GENERIC = re.compile(
    r"_?_?schedule|_?_?switch_to|schedule_|context_switch|do_syscall|entry_|ret_from|_?_?x64_sys|ksys_|vfs_"
    r"|kthread|wait_for_completion|rwsem_|mutex_|_?_?mutex|down_|out_of_line"
)
"""Functions that every wait goes through."""
_PS_HEAD = re.compile(r"^\s*(?:\S+\s+)*PID\b.*\b(?:STAT|S)\b.*\b(?:COMMAND|CMD|ARGS)\s*$")
_LAST_COLUMNS = ("COMMAND", "CMD", "ARGS")
_PS_COMMAND = re.compile(r"\bps (?:-\w* ?)*-?\w*o ?(?P<columns>[\w%:,]*pid[\w%:,]*)")
"""The command itself, where a filter has taken the head away."""
_PS_AUX = ["USER", "PID", "%CPU", "%MEM", "VSZ", "RSS", "TTY", "STAT", "START", "TIME", "COMMAND"]
_PS_AUX_ROW = re.compile(
    r"^[\w.+-]{1,40} +\d{1,9} +\d+\.\d +\d+\.\d +\d+ +\d+ +\S{1,12} +[A-Z][\w<+]{0,5} +\S+ +\d+:\d\d "
)
"""A row of `ps aux`."""
_TRAINS = re.compile(r"python|torchrun|accelerate|deepspeed|horovod")
_STOPPED_FIX = (
    "kill -CONT {pid}   # on its host, if nobody debugs it: a signal or a debugger stopped it"
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    if not any(sign in text for sign in _SIGNS):
        return None
    lines = text.split("\n")
    heard = [*_blocked_tasks(exhibit, lines), *_stacks(exhibit, lines), *_listed(exhibit, lines)]
    return Testimony(heard=tuple(heard[:MAX_WAITS])) if heard else None


def _blocked_tasks(exhibit: Exhibit, lines: Sequence[str]) -> Iterator[Heard]:
    reported_pids: set[int] = set()
    for number, line in enumerate(lines):
        match = _BLOCKED.search(line) if "blocked" in line else None
        if match is None or int(match["pid"]) in reported_pids:
            continue
        reported_pids.add(int(match["pid"]))
        trace = lines[number + 1 : number + MAX_TRACE_LINES]
        end = next((n for n, t in enumerate(trace) if _BLOCKED.search(t)), len(trace))
        functions = [m["name"] for t in trace[:end] if (m := _FUNCTION.search(t)) is not None]
        process_name = f"pid {match['pid']} ({match['name']})"
        yield _heard(
            exhibit,
            number,
            line,
            int(match["pid"]),
            process_name,
            functions,
            f"for {match['s']} s and more",
        )


def _stacks(exhibit: Exhibit, lines: Sequence[str]) -> Iterator[Heard]:
    pid, number = 0, 0
    while number < len(lines):
        if "/proc/" in lines[number] and (named := _STACK_OF.search(lines[number])) is not None:
            pid = int(named["pid"])
        begin = number
        functions = []
        while number < len(lines) and (match := _STACK_LINE.match(lines[number])) is not None:
            functions.append(match["name"])
            number += 1
        if functions and find_kernel_wait(_telling(functions))[0] is not UNKNOWN_WAIT:
            process_name = f"pid {pid}" if pid else "a process"
            yield _heard(
                exhibit,
                begin,
                lines[begin],
                pid,
                process_name,
                functions,
                "when it was looked at",
                Severity.WARNING,
            )
        number = max(number, begin + 1)


def _listed(exhibit: Exhibit, lines: Sequence[str]) -> Iterator[Heard]:
    """Yield the training processes that `ps` lists as waiting in the kernel (D) or as stopped (T, t)."""
    columns: list[str] = []
    for number, line in enumerate(lines):
        if len(line) > MAX_ROW_CHARS:
            continue
        is_head = "ps -" in line or line.rstrip().endswith(_LAST_COLUMNS)
        if is_head and (head := _columns(line)) is not None:
            columns = head
            continue
        if not _TRAINS.search(line):
            continue
        here = _PS_AUX if not columns and _PS_AUX_ROW.match(line) else columns
        cells = line.split(None, len(here) - 1) if here else []
        if not cells or len(cells) < len(here):
            continue
        row = dict(zip(here, cells, strict=True))
        state, command = row.get("STAT", row.get("S", "")), cells[-1]
        if not row.get("PID", "").isdecimal() or not _TRAINS.search(command):
            continue
        pid = int(row["PID"])
        process_name = f"pid {pid} ({command[:80]})"
        if state[:1] == "D":
            functions = [row[c] for c in row if c.startswith("WCHAN") and row[c] != "-"]
            yield _heard(
                exhibit, number, line, pid, process_name, functions, "when ps ran", Severity.WARNING
            )
        elif state[:1] in ("T", "t"):
            says = f"{process_name} is stopped (state {state[:1]}) and does nothing"
            yield _message(
                exhibit, number, line, pid, says, _STOPPED_FIX.format(pid=pid), Severity.WARNING
            )


def _columns(line: str) -> list[str] | None:
    """Return the columns of a listing whose head, or whose command, this line is; None if it is neither."""
    if _PS_HEAD.match(line):
        return line.split()
    if (command := _PS_COMMAND.search(line)) is not None:
        return [c.partition(":")[0].upper() for c in command["columns"].split(",")]
    return None


def _telling(functions: Sequence[str]) -> list[str]:
    return [f for f in functions if not _GENERIC.match(f)]


def _heard(
    exhibit: Exhibit,
    number: int,
    line: str,
    pid: int,
    process_name: str,
    functions: Sequence[str],
    since: str,
    severity: Severity = Severity.ERROR,
) -> Heard:
    wait, function = find_kernel_wait(_telling(functions))
    inside = f" (in {function})" if function else ""
    says = f"{process_name} waited in the kernel for {wait.awaited}{inside}, {since}"
    return _message(exhibit, number, line, pid, says, wait.fix.format(pid=pid or "PID"), severity)


def _message(
    exhibit: Exhibit, number: int, line: str, pid: int, says: str, fix: str, severity: Severity
) -> Heard:
    speaker = Speaker(exhibit.rank, line.strip()[:300], exhibit.place_of_line(number))
    about = (Who(job="process", index=-1, pid=pid, host=exhibit.host),) if pid else ()
    return Heard(
        rule=RULE_OF_WAITS, says=says, speakers=(speaker,), fix=fix, about=about, severity=severity
    )


READER = LogReader(read=read_log)
