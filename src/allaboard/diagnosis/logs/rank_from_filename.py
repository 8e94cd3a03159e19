"""Ranks and pids in the names of files."""

from __future__ import annotations

import re
from pathlib import Path

TORCHRUN_LOG = re.compile(r"/(\d{1,7})/(?:stdout|stderr)\.log$")
"""Matches a file of ``torchrun --log-dir``: one for each local rank."""
MIN_PID = 1000
"""Number from which a ``process`` is a pid, unless other files count processes from 0."""
_RANK_IN_NAME = re.compile(
    r"(?:^|[^a-z])(?P<what>rank|worker|task|proc|process)[-_.]?(?P<number>\d{1,7})(?!\d)", re.I
)
_ATTEMPT_LOG = re.compile(r"/attempt_\d{1,6}/(\d{1,7})/(?:stdout|stderr)\.log$")
"""Matches a file of ``torchrun --log-dir`` that is named by itself."""
_PID_IN_NAME = re.compile(r"(?:^|[^a-z])pid[-_.=]?(\d{1,7})(?!\d)", re.I)


def rank_and_pid_from_name(file: Path, base: Path) -> tuple[int, int]:
    """Return the rank and the pid that the file's name states, or its folders' below ``base``: -1 and 0 for
    none.

    A high number of a process is its pid: ``process_4242.txt``.
    """
    name = file.name if file == base else str(file.relative_to(base.parent))
    pids = _PID_IN_NAME.findall(file.name)
    pid = int(pids[-1]) if pids else 0
    matches = list(_RANK_IN_NAME.finditer(name))
    if matches:
        last_match = matches[-1]
        if _is_pid(file, name, last_match):
            return -1, pid or int(last_match["number"])
        return int(last_match["number"]), pid
    torchrun_ranks = TORCHRUN_LOG.findall(name) or _ATTEMPT_LOG.findall(str(file))
    return int(torchrun_ranks[-1]) if torchrun_ranks else -1, pid


def _is_pid(file: Path, name: str, match: re.Match[str]) -> bool:
    if not match["what"].lower().startswith("proc") or int(match["number"]) < MIN_PID:
        return False
    full_name = str(file)
    prefix = full_name[: len(full_name) - len(name) + match.start("number")]
    suffix = name[match.end("number") :].partition("/")[0]
    return not any(Path(f"{prefix}{n}{suffix}").exists() for n in (0, 1))
