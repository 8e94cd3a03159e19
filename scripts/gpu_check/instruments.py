"""Steps that ask an instrument, and let ``allaboard diagnose`` read what it prints."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable

from bench import Bench, Outcome, says


def read_instrument(*command: str) -> Callable[[Bench], Outcome]:
    """Return a step that runs an instrument and reads its output."""

    def run(bench: Bench) -> Outcome:
        name = re.sub(r"\W+", "-", " ".join(command))
        code, output = bench.call(command, 60, name)
        if code != 0:
            return Outcome(
                False, f"{shlex.join(command)}: exit code {code}: {output.strip()[:120]}"
            )
        code, answer = bench.call(
            bench.allaboard("diagnose", str(bench.out / f"{name}.txt")), 60, f"diagnose-{name}"
        )
        said = answer.strip().splitlines()[:1] or ["nothing"]
        return Outcome(
            code in (0, 1) and "witness" not in answer, f"read; diagnose: {said[0][:140]}"
        )

    return run


def ask_ras(bench: Bench) -> Outcome:
    """NCCL's service answers about a job that trains, and says nothing wrong."""
    bench.start_ranks(2, "nccl_job.py", "--steps", "1000000")
    bench.wait(2)
    code, output = bench.call(bench.allaboard("diagnose", bench.ras), 90, "ras-healthy")
    wrong = says(output, r"error \w+\d{3}[^\n]*")
    return Outcome(not wrong.held and code in (0, 1), f"exit code {code}: {output.strip()[-160:]}")


def ask_ras_stopped(bench: Bench) -> Outcome:
    """NCCL's service misses a rank that is stopped."""
    bench.start_ranks(2, "nccl_job.py", "--fault", "stop")
    bench.wait(8)
    if shutil.which("ncclras"):
        port = bench.ras.rpartition(":")[2]
        bench.call(["ncclras", "-v", "-p", port], 30, "ncclras-text")
        bench.call(["ncclras", "-f", "json", "-p", port], 30, "ncclras-json")
    _, output = bench.call(bench.allaboard("diagnose", bench.ras), 90, "ras-stopped")
    return says(output, r"DUMP007 nccl-peer-lost: rank 1[^\n]*")
