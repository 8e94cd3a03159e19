"""Nearly all bytes of the variables are placed on one of several parameter servers.

## Why it matters
`replica_device_setter` and ParameterServerStrategy place variables round-robin, by count and not by size. One
embedding table or one dense layer puts its whole traffic on one server while the others are idle. Adding
servers then changes nothing.

This is reported only if the bytes are actually exchanged. A large table of which each step uses a few rows
(an embedding with sparse gradients) costs its server only memory, and is not reported.

Every worker waits in every step for the server with the most bytes, for as long as their transfer takes; the
other servers have answered long before.

## What to do
Partition the large variable: `partitioner=tf.fixed_size_partitioner(P)` in `get_variable`, or
`variable_partitioner=tf.distribute.experimental.partitioners.MinSizePartitioner(...)` in TensorFlow 2. Or
place variables by size: `ps_strategy=tf.contrib.training.GreedyLoadBalancingStrategy` (TensorFlow 1's own).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from allaboard.analysis.parameter_servers import (
    SERVER_JOBS,
    PlacedVariables,
    find_placement,
    find_task,
    has_parameter_servers,
    training_members,
)
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Pair, Severity
from allaboard.facts.samples import SERVING, ps_member, sample_job

MIN_TOTAL_BYTES = 1 << 20
"""Total bytes of the variables below which their placement does not matter."""
MIN_SHARE = 0.8
"""Share of the bytes on one server from which it is reported; an even placement would give it half or
less."""
MIN_EXCHANGED_SHARE = 0.3
"""Share of its bytes that a step exchanges with it: a dense variable is read as a whole, and its gradient
sent."""
MIN_STEPS = 5
"""Steps over which that is measured."""


def check(view: JobView) -> Iterator[Claim]:
    if not has_parameter_servers(view):
        return
    servers = {m.who.index for m in view.members if m.who.job in SERVER_JOBS}
    placed = {
        task: placement
        for task, placement in find_placement(view).items()
        if task.startswith("ps:")
    }
    total = sum(placement.bytes for placement in placed.values())
    if len(servers) < 2 or total < MIN_TOTAL_BYTES:
        return
    fullest = max(placed, key=lambda task: placed[task].bytes)
    if (
        placed[fullest].bytes >= MIN_SHARE * total
        and _bytes_per_step(view, fullest) >= MIN_EXCHANGED_SHARE * placed[fullest].bytes
    ):
        yield _claim(view, fullest, placed, total, len(servers))


def _bytes_per_step(view: JobView, server: str) -> float:
    """Return the bytes exchanged with this server per step; 0 until that is measured."""
    steps = sum(m.step for m in training_members(view))
    pairs = [p for m in view.members if m.who.job not in SERVER_JOBS for p in m.pairs]
    moved = sum(p.received_all + p.sent_all for p in pairs if p.task == server)
    return moved / steps if steps >= MIN_STEPS else 0.0


def _claim(
    view: JobView, fullest: str, placed: dict[str, PlacedVariables], total: int, servers: int
) -> Claim:
    server = find_task(view, "ps", int(fullest.partition(":")[2]))
    listed = ", ".join(
        f"{task.replace(':', ' ')}: {_describe_count(placement.variables)}, {placement.bytes:,} bytes"
        for task, placement in sorted(placed.items())
    )
    return Claim(
        summary=f"{fullest.replace(':', ' ')} holds {placed[fullest].bytes / total:.0%} of the variables' "
        f"bytes; the other {f'{servers - 1} servers hold' if servers > 2 else 'server holds'} nearly none",
        who=(server.who,) if server is not None else (),
        evidence=(Evidence(listed, "devices of the variables"),),
        fix=f"partitioner=tf.fixed_size_partitioner({servers}) for the largest variable "
        "(variable_partitioner= of ParameterServerStrategy)",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _describe_count(variables: int) -> str:
    return f"{variables} variable" + ("s" if variables != 1 else "")


def _placed(*sizes: int, moved: float = 1.5) -> dict[str, Any]:
    """Return what is placed on each server, and ``moved`` times as much exchanged with it in each of 40
    steps."""
    return {
        "notes": {f"placed on ps:{i}": f"2 variables, {s} bytes" for i, s in enumerate(sizes)},
        "pairs": tuple(
            Pair(task=f"ps:{i}", received_all=int(40 * moved * s)) for i, s in enumerate(sizes)
        ),
    }


_TWO = (ps_member("ps", 0), ps_member("ps", 1))
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "nearly all bytes of the variables are on one of two servers": (
            sample_job(ps_member("worker", 0, **_placed(40_000_000, 2560)), *_TWO),
            "ps 0 holds 100% of the variables' bytes; the other server holds nearly none",
        ),
        "TensorFlow 2's chief placed nearly all bytes on one server, and a worker exchanges them": (
            sample_job(
                ps_member("chief", 0, number=3, **(_placed(512, 6_000_000) | {"pairs": ()})),
                ps_member("worker", 0, op=SERVING, pairs=_placed(512, 6_000_000)["pairs"]),
                *_TWO,
            ),
            "ps 1 holds 100% of the variables' bytes; the other server holds nearly none",
        ),
    },
    silent_on={
        "the bytes of the variables are spread evenly over two servers": sample_job(
            ps_member("worker", 0, **_placed(20_000_000, 18_000_000)), *_TWO
        ),
        "TensorFlow 2's chief placed the bytes of the variables evenly": sample_job(
            ps_member("chief", 0, number=3, **_placed(20_000_000, 18_000_000)),
            ps_member("worker", 0, op=SERVING),
            *_TWO,
        ),
        "a job with a single server": sample_job(
            ps_member("worker", 0, **_placed(40_000_000)), ps_member("ps", 0)
        ),
        "a table of which each step uses a few rows": sample_job(
            ps_member("worker", 0, **_placed(40_000_000, 2560, moved=0.01)), *_TWO
        ),
        "nothing has been exchanged with the servers yet": sample_job(
            ps_member("worker", 0, **(_placed(40_000_000, 2560) | {"pairs": ()})), *_TWO
        ),
        "variables of 16 kB in total": sample_job(
            ps_member("worker", 0, **_placed(16_000, 40)), *_TWO
        ),
    },
    drill=("ps-uneven", "tf2-ps-uneven"),
)
