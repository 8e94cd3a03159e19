"""Nearly all bytes of the variables are on one of several parameter servers.

## Why it matters
`replica_device_setter` and ParameterServerStrategy deal variables out in turn, by count and not by
size: one embedding table or one dense layer puts its whole traffic on one server, and the others
idle. Adding servers then changes nothing.

What waits for what: every worker, in every step, for the server with the most bytes. How long: as long as
those bytes take; the other servers' answers have long come.

## What to do
Cut the large variable into parts: `partitioner=tf.fixed_size_partitioner(P)` in `get_variable`,
`variable_partitioner=tf.distribute.experimental.partitioners.MinSizePartitioner(...)` in TensorFlow 2; or
deal by size: `ps_strategy=tf.contrib.training.GreedyLoadBalancingStrategy` (TensorFlow 1's own).
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.placement import Held, placement
from allaboard.evidence.servers import SERVER_JOBS, find
from allaboard.facts import Certainty, Claim, Evidence, JobView, Severity, Stage
from allaboard.facts.samples import SERVING, job, task

LARGE = 1 << 20
"""Bytes in all below which the placement does not matter."""
SHARE = 0.8
"""Share of the bytes on one server from which it is said, where even would be a half or less."""


def check(view: JobView) -> Iterator[Claim]:
    servers = {m.who.index for m in view.members if m.who.job in SERVER_JOBS}
    placed = {task: held for task, held in placement(view).items() if task.startswith("ps:")}
    total = sum(held.bytes for held in placed.values())
    if len(servers) < 2 or total < LARGE:
        return
    most = max(placed, key=lambda task: placed[task].bytes)
    if placed[most].bytes >= SHARE * total:
        yield _claim(view, most, placed, total, len(servers))


def _claim(view: JobView, most: str, placed: dict[str, Held], total: int, servers: int) -> Claim:
    who = find(view, "ps", int(most.partition(":")[2]))
    listed = ", ".join(
        f"{task.replace(':', ' ')}: {_count(held.variables)}, {held.bytes:,} bytes"
        for task, held in sorted(placed.items())
    )
    return Claim(
        summary=f"{most.replace(':', ' ')} holds {placed[most].bytes / total:.0%} of the variables' "
        f"bytes; the other {servers - 1} of {servers} servers hold nearly none",
        who=(who.who,) if who is not None else (),
        evidence=(Evidence(listed, "devices of the variables"),),
        fix=f"partitioner=tf.fixed_size_partitioner({servers}) for the largest variable "
        "(variable_partitioner= of ParameterServerStrategy)",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _count(variables: int) -> str:
    return f"{variables} variable" + ("s" if variables != 1 else "")


def _placed(*sizes: int) -> dict[str, dict[str, str]]:
    return {"notes": {f"placed on ps:{i}": f"2 variables, {s} bytes" for i, s in enumerate(sizes)}}


_TWO = (task("ps", 0), task("ps", 1))
RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    fires_on={
        "one table": (
            job(task("worker", 0, **_placed(40_000_000, 2560)), *_TWO),
            "ps 0 holds 100% of the variables' bytes; the other 1 of 2 servers hold nearly none",
        ),
        "TensorFlow 2's chief, before anything has been computed": (
            job(
                task("chief", 0, number=3, step=0, **_placed(512, 6_000_000)),
                task("worker", 0, op=SERVING),
                *_TWO,
            ),
            "ps 1 holds 100% of the variables' bytes; the other 1 of 2 servers hold nearly none",
        ),
    },
    silent_on={
        "even": job(task("worker", 0, **_placed(20_000_000, 18_000_000)), *_TWO),
        "the chief of TensorFlow 2 placed them evenly": job(
            task("chief", 0, number=3, **_placed(20_000_000, 18_000_000)),
            task("worker", 0, op=SERVING),
            *_TWO,
        ),
        "one server holds all by right": job(
            task("worker", 0, **_placed(40_000_000)), task("ps", 0)
        ),
        "small": job(task("worker", 0, **_placed(16_000, 40)), *_TWO),
    },
    since="0.1",
    drill=("ps-uneven", "tf2-ps-uneven"),
)
