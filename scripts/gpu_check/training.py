"""Steps that train: with each framework, and in ways that hooks could disturb."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable

from bench import JOBS, Bench, Outcome

Run = Callable[[Bench], Outcome]


def _ends_well(code: int, output: str) -> Outcome:
    last = output.strip().splitlines()[-1:] or ["no output"]
    # What a run may find in a script of ours, or on a machine that is too busy, is a false alarm here.
    alarms = [line for line in output.splitlines() if " error " in line[:24]]
    return Outcome(
        code == 0 and "trained" in output and not alarms,
        f"exit code {code}: {(alarms or last)[0][:160]}",
    )


def train_torch(backend: str, workers: Callable[[Bench], int]) -> Run:
    """Return a step that trains with torch."""

    def run(bench: Bench) -> Outcome:
        count = workers(bench)
        return _ends_well(
            *bench.train(count, "torch_job.py", "--backend", backend, "--device", bench.device)
        )

    return run


def train_other(job: str) -> Run:
    """Return a step that trains with another framework."""

    def run(bench: Bench) -> Outcome:
        return _ends_well(*bench.train(1, job, "--device", bench.device))

    return run


def train_healthy(kind: str) -> Run:
    """Return a step that trains in one of the ways of healthy_job.py, with and without allaboard: the losses
    are the same."""

    def run(bench: Bench) -> Outcome:
        ranks = bench.start_ranks(2, "healthy_job.py", "--kind", kind, awaited="")
        plain = {
            line for p in ranks if p.stdout is not None for line in p.communicate()[0].split("\n")
        }
        code, output = bench.train(2, "healthy_job.py", "--kind", kind)
        outcome = _ends_well(code, output)
        if kind == "graph" and outcome.held and not re.search(r"\n\S+ \S+: 5\d steps", output):
            return Outcome(False, "the replays of the graph are not counted as steps")
        wanted = [line for line in plain if line.startswith(f"trained {kind}")]
        if outcome.held and not all(line in output for line in wanted):
            return Outcome(False, f"other losses than without allaboard: {sorted(wanted)}")
        return outcome if wanted else Outcome(False, "does not train without allaboard either")

    return run


def missing_readings(events: str) -> list[str]:
    """Return what the snapshots of a feed, as JSON lines, lack of a GPU and of the ranks on it. Pure."""
    snapshots = []
    for line in events.splitlines():
        try:
            snapshots.append(json.loads(line).get("snapshot") or {})
        except ValueError:  # the last line may not be whole
            continue
    gpus = [gpu for s in snapshots for host in s.get("hosts", ()) for gpu in host.get("gpus", ())]
    ranks = [rank for s in snapshots for rank in s.get("ranks", ())]
    fields = (
        "name",
        "memory_limit_nbytes",
        "memory_nbytes",
        "temperature_c",
        "power_w",
        "clock_mhz",
    )
    missing = [name for name in fields if not any(gpu.get(name) for gpu in gpus)]
    if not any(rank.get("device_memory") for rank in ranks):
        missing.append("device_memory of a rank")
    return missing


def readings(bench: Bench) -> Outcome:
    """A job that trains: the driver's numbers and those of the framework are in its feed."""
    events = bench.out / "readings.jsonl"
    job = ["-n", "1", "--run-dir", str(bench.out / "readings"), "--events", str(events)]
    words = [str(JOBS / "torch_job.py"), "--backend", "nccl", "--steps", "100000000"]
    process = bench.start(bench.allaboard("run", *job, *words))
    until = time.monotonic() + 60
    missing = ["everything"]
    while missing and time.monotonic() < until and process.poll() is None:
        bench.wait(1)
        missing = missing_readings(events.read_text()) if events.exists() else missing
    bench.end(process)
    # Some GPUs tell neither power nor clock.
    needed = {"everything", "name", "memory_limit_nbytes", "device_memory of a rank"}
    return Outcome(not needed & set(missing), f"not read: {', '.join(missing) or 'nothing'}")
