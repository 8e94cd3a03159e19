"""The end of a job with parameter servers, for a person: which task waited for which, and how long."""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.facts import Report, Times, WorkerReport

MAX_SHOWN_TASKS = 8
"""Tasks that are shown; the rest is in the report."""


def server_lines(report: Report) -> list[str]:
    """Return one line for each task that was measured; none for a job without parameter servers."""
    lines = [line for worker in report.workers for line in _worker_lines(worker)]
    more = (
        [f"{len(lines) - MAX_SHOWN_TASKS} more tasks: see report.json"]
        if len(lines) > MAX_SHOWN_TASKS
        else []
    )
    return lines[:MAX_SHOWN_TASKS] + more


def _worker_lines(worker: WorkerReport) -> Iterator[str]:
    name = f"{worker.job} {worker.index}"
    if worker.times is not None:
        yield f"{name}: {_describe_times(worker.times)}{_describe_traffic(worker)}"
    elif worker.job == "ps" and worker.allowed_cores:
        count = f"{worker.variables} variable" + ("s" if worker.variables != 1 else "")
        variables = (
            f"; {count}, {format_bytes(worker.variables_nbytes)}" if worker.variables else ""
        )
        yield f"{name}: {_describe_cpu(worker)}{_describe_traffic(worker)}{variables}"


def _describe_cpu(worker: WorkerReport) -> str:
    """Return the mean over the task's whole life. A limit that was set later may be lower than that."""
    if worker.cpu_cores > worker.allowed_cores:
        return f"{worker.cpu_cores:.2f} cores, at the end {worker.allowed_cores:g} at most"
    return f"{worker.cpu_cores:.2f} of {worker.allowed_cores:g} cores"


def _describe_times(times: Times) -> str:
    """Return the shares of the time, the largest first."""
    server = times.server.replace(":", " ")
    awaited = "work from the chief" if times.is_handed_work else "others who train"
    shares = [
        (times.servers, f"waiting for servers{f' (most for {server})' if server else ''}"),
        (times.workers, f"waiting for {awaited}"),
        (times.chief, "waiting for the chief to initialise"),
        (times.computing, "computing"),
        (times.own, "in its own code"),
    ]
    clauses = [
        f"{share:.0%} {activity}"
        for share, activity in sorted(shares, reverse=True)
        if share >= 0.01
    ]
    return f"of {times.seconds:.0f} s " + ", ".join(clauses)


def _describe_traffic(worker: WorkerReport) -> str:
    """Return the bytes that were exchanged with all other tasks, and the longest round trip."""
    if not worker.pairs:
        return ""
    worst = max(worker.pairs, key=lambda p: p.rtt)
    received = sum(p.received_all for p in worker.pairs)
    sent = sum(p.sent_all for p in worker.pairs)
    text = f"; {format_bytes(received)} in, {format_bytes(sent)} out"
    if not worst.rtt:
        return text  # the kernel had no measurement yet
    return text + f", round trip to {worst.task.replace(':', ' ')} {worst.rtt * 1000:.2g} ms"


def format_bytes(count: float) -> str:
    """Return ``1.5 MB``: a number of bytes in powers of ten."""
    units = ["TB", "GB", "MB", "kB", "bytes"]
    while count >= 1000 and len(units) > 1:
        count /= 1000
        units.pop()
    digits = 0 if units[-1] == "bytes" or count >= 100 else 1
    return f"{count:.{digits}f} {units[-1]}"
