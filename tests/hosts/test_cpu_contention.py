"""Who has the cores of a process, on this very machine."""

from __future__ import annotations

import os
import subprocess
import sys

from allaboard.hosts.cpu_contention import OURS, RUN_QUEUE, TAKEN, CoreContention

BUSY = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"


def test_what_runs_below_us_is_ours_and_takes_the_cores() -> None:
    cores = CoreContention()
    one = subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        before = {r.name: r for r in cores.read_contention([one.pid])}
        assert one.stdout is not None
        one.stdout.readline()
        after = {r.name: r for r in cores.read_contention([one.pid])}
    finally:
        one.kill()
        one.communicate()
    assert set(after) == {RUN_QUEUE, TAKEN, OURS}
    assert after[TAKEN].limit == len(os.sched_getaffinity(0))
    assert after[OURS].value - before[OURS].value >= 0.2
    assert after[TAKEN].value - before[TAKEN].value >= 0.2
    assert after[RUN_QUEUE].value >= before[RUN_QUEUE].value >= 0.0
    gone = {r.name: r.value for r in cores.read_contention([one.pid])}
    assert gone == {OURS: after[OURS].value}, "what has ended is not taken back"


def test_nothing_is_read_where_nobody_serves() -> None:
    assert list(CoreContention().read_contention([])) == []
