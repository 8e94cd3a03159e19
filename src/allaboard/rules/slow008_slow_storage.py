"""Ranks wait for data because the disk, or the file server, that it comes from is slow.

Three measurements must agree over ten seconds: the ranks of a host wait for data in four tenths of each step
or more; meanwhile tasks of that host stall on input and output (/proc/pressure/io) for a third of the time or
more, and at least half as long as the ranks wait; and a disk is busy four fifths of the time, or a disk or an
NFS mount takes 20 ms or more for a request on average. Where only the first is measured, the cause is in the
script or in its CPU work, which [SLOW002](SLOW002.md) reports.

## Why it matters
More `num_workers` only queue up at the same disk, and a faster GPU waits longer.

## What to do
Copy the data to a local disk before the start, or read fewer and larger files (WebDataset, TFRecord,
Parquet): a request costs the same for 4 kB as for a megabyte. See what else reads there: `iostat -x 1`,
`iotop -o`, `nfsiostat 1`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import conjugate_verb, name_members
from allaboard.analysis.resources.host_load import host_load_claim, is_whole_job_training
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, JobView, Member, Pace, Trend, Use
from allaboard.facts.samples import sample_job, sample_member

MIN_SPAN_S = 10.0
"""Seconds that must have been measured."""
MIN_INPUT_SHARE = 0.4
"""Share of a step that a rank must wait for data, ..."""
MIN_WAIT_S = 0.01
"""... and the least time (s) of a step."""
MIN_STALLED_SHARE = 0.33
"""Share of the time in which tasks of the host must stall on input and output."""
MIN_SHARE_OF_WAIT = 0.5
"""Share of the ranks' waiting that these stalls must last."""
MIN_LATENCY_S = 0.02
"""Mean time of a request from which a disk or a server is slow."""
MIN_BUSY_SHARE = 0.8
"""Share of the time from which a disk is busy."""


def check(view: JobView) -> Iterator[Claim]:
    stalls = [
        u
        for u in view.uses
        if u.name == "io pressure" and u.span >= MIN_SPAN_S and u.rate >= MIN_STALLED_SHARE
    ]
    if not stalls or not is_whole_job_training(view):
        return
    for stall in stalls:
        waiting = [m for m in view.alive if m.who.host == stall.host and _waits(m)]
        store = _slowest_store(view, stall.host)
        if not waiting or store is None:
            continue
        share = min(m.pace.input / m.pace.step for m in waiting)
        if stall.rate >= MIN_SHARE_OF_WAIT * share:
            yield _claim(waiting, share, stall, store)


def _waits(member: Member) -> bool:
    pace = member.pace
    return (
        not member.launcher
        and pace.span >= MIN_SPAN_S
        and pace.input >= max(MIN_WAIT_S, MIN_INPUT_SHARE * pace.step)
    )


def _slowest_store(view: JobView, host: str) -> tuple[Use, str] | None:
    """Return the disk or mount that explains the stalls, by its reading and in words; None for none."""
    slow = []
    for use in view.uses:
        if use.host != host:
            continue
        latency_of, busy = use.name.removeprefix("latency of "), use.name.removeprefix("busy disk ")
        if latency_of != use.name and use.value >= MIN_LATENCY_S:
            slow.append((use.value, use, f"{latency_of} takes {use.value * 1e3:.0f} ms a request"))
        elif busy != use.name and use.rate >= MIN_BUSY_SHARE:
            share = min(1.0, use.rate)
            slow.append((0.0, use, f"disk {busy} is busy {share:.0%} of the time"))
    return max(slow, key=lambda s: (s[0], s[2]))[1:] if slow else None


def _claim(members: list[Member], share: float, stall: Use, store: tuple[Use, str]) -> Claim:
    use, description = store
    claim = host_load_claim(
        tuple(members),
        f"{name_members(members)} {conjugate_verb('wait', members)} for data {share:.0%} of each step on "
        f"{stall.host}, where {description}",
        Evidence(description, use.origin),
        f"on {stall.host}: iostat -x 1; iotop -o   # what else reads there; copy the data to a local disk",
    )
    stalled = Evidence(
        f"tasks stall on input and output {min(1.0, stall.rate):.0%} of {stall.span:.0f} s",
        stall.origin,
    )
    return Claim(
        summary=claim.summary,
        who=claim.who,
        evidence=(*claim.evidence, stalled),
        fix=claim.fix,
        severity=claim.severity,
        certainty=claim.certainty,
    )


def _view(
    stalled: float = 0.6,
    latency_s: float = 0.045,
    busy: float = 0.3,
    data_s: float = 0.07,
    span: float = 20.0,
) -> JobView:
    def use(name: str, value: float, rate: float, origin: str) -> Use:
        recent = Trend(rate, 0.99, 15.0)
        return Use(
            host="a", pid=0, name=name, value=value, limit=0.0, rate=rate, fit=0.99, span=span,
            origin=origin, recent=recent,
        )  # fmt: skip

    pace = Pace(steps=63, step=0.1, input=data_s, sync=0.01, span=15.0)
    return sample_job(
        sample_member(0, pace=pace),
        sample_member(1, pace=pace),
        uses=(
            use("io pressure", 50.0, stalled, "/proc/pressure/io"),
            use("latency of /data", latency_s, 0.0, "/proc/self/mountstats"),
            use("latency of nvme0n1", 0.0002, 0.0, "/proc/diskstats"),
            use("busy disk nvme0n1", 70.0, busy, "/proc/diskstats"),
        ),
    )


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a file server takes 45 ms a request": (
            _view(),
            "worker 0, worker 1 wait for data 70% of each step on a, where /data takes 45 ms a request",
        ),
        "a disk is busy 97 % of the time": (
            _view(latency_s=0.0, busy=0.97),
            "worker 0, worker 1 wait for data 70% of each step on a, where disk nvme0n1 is busy 97% of the "
            "time",
        ),
    },
    silent_on={
        "the data is computed slowly, and tasks hardly stall on input and output": _view(
            stalled=0.02
        ),
        "other programs use the storage, and the data arrives in time": _view(data_s=0.005),
        "tasks stall on input and output, but no disk is slow": _view(latency_s=0.001),
        "tasks stall a third of the time, and the workers wait for data far longer": _view(
            stalled=0.34, data_s=0.09
        ),
        "stalls that were observed for only 5 seconds": _view(span=5.0),
    },
    passes=True,
    unstaged="a disk would have to be slowed down for the whole machine; the readings are measured on this "
    "kernel, those of NFS are made from mountstats(8)",
    relations=Relations(measured=True),
)
