"""The end of a job with parameter servers, for a person: who waited for whom, how long."""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.facts import Report, Times, WorkerReport

MOST = 8
"""Tasks that are told of; the rest is in the report."""


def server_lines(report: Report) -> list[str]:
    """One line for each task that was measured; none for a job without parameter servers."""
    lines = [line for one in report.workers for line in _lines(one)]
    more = [f"{len(lines) - MOST} more tasks: see report.json"] if len(lines) > MOST else []
    return lines[:MOST] + more


def _lines(one: WorkerReport) -> Iterator[str]:
    name = f"{one.job} {one.index}"
    if one.times is not None:
        yield f"{name}: {_times(one.times)}{_exchanged(one)}"
    elif one.job == "ps" and one.allowed:
        count = f"{one.variables} variable" + ("s" if one.variables != 1 else "")
        placed = f"; {count}, {size(one.bytes)}" if one.variables else ""
        yield f"{name}: {_cores(one)}{_exchanged(one)}{placed}"


def _cores(one: WorkerReport) -> str:
    """Of all its time; a limit that came later may be below that."""
    if one.cpu > one.allowed:
        return f"{one.cpu:.2f} cores, at the end {one.allowed:g} at most"
    return f"{one.cpu:.2f} of {one.allowed:g} cores"


def _times(times: Times) -> str:
    """The largest share first."""
    server = times.server.replace(":", " ")
    shares = [
        (times.servers, f"waiting for servers{f' (most for {server})' if server else ''}"),
        (times.workers, "waiting for others who train"),
        (times.chief, "waiting for the chief to initialise"),
        (times.computing, "computing"),
        (times.own, "in its own code"),
    ]
    told = [f"{share:.0%} {what}" for share, what in sorted(shares, reverse=True) if share >= 0.01]
    return f"of {times.seconds:.0f} s " + ", ".join(told)


def _exchanged(one: WorkerReport) -> str:
    """What went to and from all others, and the longest round trip."""
    if not one.pairs:
        return ""
    worst = max(one.pairs, key=lambda p: p.rtt)
    received = sum(p.received_all for p in one.pairs)
    sent = sum(p.sent_all for p in one.pairs)
    text = f"; {size(received)} in, {size(sent)} out"
    return text + f", round trip to {worst.task.replace(':', ' ')} {worst.rtt * 1000:.2g} ms"


def size(count: float) -> str:
    """``1.5 MB``, in powers of ten."""
    units = ["TB", "GB", "MB", "kB", "bytes"]
    while count >= 1000 and len(units) > 1:
        count /= 1000
        units.pop()
    digits = 0 if units[-1] == "bytes" or count >= 100 else 1
    return f"{count:.{digits}f} {units[-1]}"
