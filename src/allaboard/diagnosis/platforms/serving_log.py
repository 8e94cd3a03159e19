"""What servers of language models write of their own worker processes: vLLM and SGLang.

They start one process for each GPU, watch them, and end all if one is gone or stands still.
"""

from __future__ import annotations

import re

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Heard, Speaker, Testimony

_DEAD_FIX = (
    "read what it wrote before this line; on its host: dmesg -T | grep -iE 'killed process|oom|xid'; "
    "PYTHONFAULTHANDLER=1 shows the line of a crash"
)
_VLLM = "its wording from the source of vLLM 0.8 to 0.20 (v1/executor)"
MESSAGES = (
    KnownMessage(
        key=" died unexpectedly, shutting down executor",
        pattern=r"Worker proc (?P<name>[\w.-]{1,80}) died unexpectedly, shutting down executor",
        rule="EXIT001",
        says="vLLM's worker process {name} died",
        fix=_DEAD_FIX,
        proves_not="of what: vLLM sees only that it is gone",
        bare_end=True,
        sample="ERROR 07-04 17:35:16 [multiproc_executor.py:140] Worker proc VllmWorker-1 died unexpectedly, "
        "shutting down executor.",
        source=_VLLM,
    ),
    KnownMessage(
        key=" died unexpectedly, shutting down executor",
        pattern=r"RayWorkerProc rank=\[?(?P<rank>\d+(?:, ?\d+)*)\]? died unexpectedly",
        rule="EXIT001",
        says="vLLM's worker process of rank {rank} died",
        fix=_DEAD_FIX,
        proves_not="of what: vLLM sees only that it is gone",
        bare_end=True,
        sample="ERROR 02-11 10:31:24 [ray_executor_v2.py:464] RayWorkerProc rank=[3] died unexpectedly, "
        "shutting down executor.",
        source=_VLLM,
    ),
    KnownMessage(
        key=" crashed with exit code -",
        pattern=r"Subprocess (?P<name>[\w.:-]{1,80}) \(pid=(?P<pid>\d+)\) crashed with exit code "
        r"-(?P<signal>\d{1,2})",
        rule="EXIT001",
        says="SGLang's process {name} (pid {pid}) was killed by signal {signal}",
        fix=_DEAD_FIX,
        bare_end=True,
        sample="[2026-03-17 17:31:53] Subprocess scheduler_0 (pid=10366) crashed with exit code -6. "
        "Triggering SIGQUIT for cleanup...",
        source="its wording from the source of SGLang 0.5 (utils/watchdog.py)",
    ),
    KnownMessage(
        key="Received sigquit from a child pro",
        pattern=r"Received sigquit from a child proces{1,2}\. It usually means the child failed",
        rule="EXIT003",
        says="a process of SGLang failed, and the server ended",
        fix="read what its schedulers wrote before this line, on every node: allaboard diagnose LOG...",
        proves_not="which one, and why: the server only got its signal",
        bare_end=True,
        sample="[2025-08-08 09:09:09] Received sigquit from a child process. It usually means the child "
        "failed.",
        source="its wording from the source of SGLang 0.3 to 0.5 (entrypoints/engine.py)",
    ),
)
_STALL = re.compile(
    r"^[^\n]{0,80}?(?:\[[\d :-]{8,30}(?P<who>(?: [A-Z]{2,5}\d+)*)\] )?(?:\w+ )?[Ww]atchdog timeout "
    r"\(self\.watchdog_timeout=(?P<limit>[\d.]+)(?:, self\.soft=False)?\)",
    re.MULTILINE,
)
"""Matches the watchdog that ends the server; the soft one only writes."""
_SCHEDULER = re.compile(r"^\[[\d :-]{8,30}((?: [A-Z]{2,5}\d+)+)\] ", re.MULTILINE)
"""Matches the name that a scheduler of SGLang puts before its lines."""
MAX_SHOWN = 8
"""Schedulers that are named."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = (*_stalls(exhibit), *find_known_messages(exhibit, MESSAGES))
    return Testimony(heard=heard) if heard else None


def _stalls(exhibit: Exhibit) -> tuple[Heard, ...]:
    """Return that SGLang's watchdogs ended the server, and whose they are if not all stood still."""
    text = exhibit.text
    stalls = list(_STALL.finditer(text)) if "self.watchdog_timeout=" in text else []
    if not stalls:
        return ()
    stalled = sorted({m["who"].strip() for m in stalls if m["who"]}, key=_numbers)
    scheduler_names = {m[1].strip() for m in _SCHEDULER.finditer(text)}
    names = ", ".join(stalled[:MAX_SHOWN]) + (", ..." if len(stalled) > MAX_SHOWN else "")
    stalled_text = (
        f"all schedulers ({names})"
        if len(stalled) > 1 and scheduler_names <= set(stalled)
        else names
    )
    earliest = stalls[0]
    number = text.count("\n", 0, earliest.start())
    return (
        Heard(
            rule="LOG001",
            says=f"SGLang's watchdog ended the server: {stalled_text or 'a scheduler'} made no progress for "
            f"{float(earliest['limit']):g} s",
            speakers=(
                Speaker(-1, earliest[0].strip()[:300], exhibit.place_of_line(number), exhibit.pid),
            ),
            fix="while it hangs, on each node: py-spy dump --pid PID of each scheduler (SGLang writes such a "
            "dump into its log if py-spy is installed), then allaboard diagnose DUMP...; NCCL_DEBUG=INFO",
            proves_not="which one held up the others: those that wait in a collective make no progress "
            "either",
        ),
    )


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", name)))


READER = LogReader(read=read_log)
