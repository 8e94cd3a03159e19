"""Whose a file is by its name: a rank's, or a process'."""

from __future__ import annotations

import re
from pathlib import Path

from allaboard.diagnosis.logs.log_demux import OF_TORCHRUN

HIGH = 1000
"""A process has such a number by the kernel, where no other file counts them from 0."""
_RANK = re.compile(
    r"(?:^|[^a-z])(?P<what>rank|worker|task|proc|process)[-_.]?(?P<number>\d{1,7})(?!\d)", re.I
)
_PID = re.compile(r"(?:^|[^a-z])pid[-_.=]?(\d{1,7})(?!\d)", re.I)


def named(file: Path, base: Path) -> tuple[int, int]:
    """The rank and the pid that its name tells, or its folders' below ``base``: -1 and 0 for none. A high
    number of a process is its pid: ``process_4242.txt``."""
    name = file.name if file == base else str(file.relative_to(base.parent))
    told = _PID.findall(file.name)
    pid = int(told[-1]) if told else 0
    found = list(_RANK.finditer(name))
    if found:
        last = found[-1]
        if _is_pid(file, name, last):
            return -1, pid or int(last["number"])
        return int(last["number"]), pid
    launched = OF_TORCHRUN.findall(name)
    return int(launched[-1]) if launched else -1, pid


def _is_pid(file: Path, name: str, found: re.Match[str]) -> bool:
    if not found["what"].lower().startswith("proc") or int(found["number"]) < HIGH:
        return False
    whole = str(file)
    before = whole[: len(whole) - len(name) + found.start("number")]
    after = name[found.end("number") :].partition("/")[0]
    return not any(Path(f"{before}{n}{after}").exists() for n in (0, 1))
