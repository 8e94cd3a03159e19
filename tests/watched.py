"""Snapshots of small and large runs, and a source that plays them, for the tests of faces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from allaboard.faces.watch.run_source import SourceChanged
from allaboard.facts import Certainty, Evidence, Finding, Op, Pace, Point, Severity, Stage, Who
from allaboard.facts.collective_calls import GroupState, Signature
from allaboard.facts.diagnosis import Branch
from allaboard.facts.samples import USER, sample_job, sample_member, stalled_job
from allaboard.facts.snapshot.job_snapshot import Snapshot
from allaboard.facts.stack import Frame
from allaboard.feed.build_snapshot import RunFacts, build_snapshot
from allaboard.feed.messages import Course, Message, Note, SnapshotMessage, Stacks

AT = "2026-11-25T12:00:00.000Z"
FACTS = {"job": "j", "command": ("python", "train.py"), "allaboard": "0.1.0", "host": "a"}


def stopped_finding(**changes: Any) -> Finding:
    fields: dict[str, Any] = {
        "rule": "HANG001",
        "name": "stopped",
        "severity": Severity.ERROR,
        "certainty": Certainty.CERTAIN,
        "stage": Stage.RUNTIME,
        "who": (Who(index=1, rank=1, host="a", pid=101),),
        "summary": "worker 1 is stopped (SIGSTOP or Ctrl-Z)",
        "evidence": (Evidence("state T for 12 s", "/proc/101/stat"),),
        "fix": "kill -CONT 101",
        "at": AT,
    }
    return Finding(**(fields | changes))


def healthy_snapshot(ranks: int = 3, **facts: Any) -> Snapshot:
    members = [
        sample_member(
            n, step=400, step_at=99.9, moved_at=99.9, pace=Pace(20, 0.05, 0.0, 0.004),
            rss_nbytes=321_000_000, cpu=0.9,
        )
        for n in range(ranks)
    ]  # fmt: skip
    view = sample_job(*members, progress_at=99.9)
    return build_snapshot(view, RunFacts(**{**FACTS, "elapsed_s": 65.0, **facts}), (), AT)


def hanging_snapshot(ranks: int = 3, *findings: Finding, **facts: Any) -> Snapshot:
    """Rank 1 is stopped, and all others wait for it."""
    op = Op("all_reduce", 41, 80.0, "0", 41)
    site = Signature("all_reduce", 7, site=USER)
    state = GroupState("0", 1, 41, 80.0, ranks, last_call=site)
    behind = GroupState("0", 1, 40, 79.0, ranks)
    members = [
        sample_member(
            n, step=400, step_at=80.0, moved_at=80.0, pace=Pace(20, 0.05, 0.0, 0.004),
            op=None if n == 1 else op, groups=(behind if n == 1 else state,),
            os_state="T" if n == 1 else "S", rss_nbytes=321_000_000,
        )
        for n in range(ranks)
    ]  # fmt: skip
    view = stalled_job(*members, progress_at=80.0)
    run_facts = RunFacts(**{**FACTS, "elapsed_s": 85.0, "status": "no progress for 20 s", **facts})
    return build_snapshot(view, run_facts, findings or (stopped_finding(),), AT)


def course() -> Course:
    times = [0.05, 0.05, 0.051, 0.049, 0.2, 0.05, 0.052, 0.05]
    points = [
        Point(elapsed_s=float(n), step=20 * n, step_s=time, steps_per_s=1 / time)
        for n, time in enumerate(times)
    ]
    stalled = [Point(elapsed_s=9.0 + n, step=160, step_s=0.05) for n in range(3)]
    return Course(points=(*points, *stalled))


def stacks(request_id: int) -> Stacks:
    loop = Frame("/home/u/train.py", 12, "<module>")
    wait = Frame("/v/site-packages/torch/distributed/distributed_c10d.py", 2800, "all_reduce")
    reading = Frame("/home/u/data.py", 7, "read")
    tree = Branch(
        ((0, 2),),
        (loop,),
        (Branch(((0, 0), (2, 2)), (wait,), ()), Branch(((1, 1),), (reading,), ())),
    )
    return Stacks(id=request_id, sampled_at=AT, tree=(tree,), sampled=3)


class PlayedSource:
    """Plays messages; it answers a request for stacks at once, if it is live."""

    def __init__(self, *snapshots: Snapshot, is_live: bool = True) -> None:
        self.is_live = is_live
        self.more: list[Message | SourceChanged] = []
        self.requests = 0
        self.is_closed = False
        self.played: list[Message | SourceChanged] = [
            SourceChanged(text="/runs/j", is_live=is_live),
            course(),
            Note(noted_at=AT, text="all 3 ready after 1.6 s"),
            *(SnapshotMessage(snapshot=s) for s in snapshots),
        ]

    async def messages(self) -> AsyncIterator[Message | SourceChanged]:
        for message in self.played:
            yield message

    def request_stacks(self) -> int:
        self.requests += self.is_live
        return 7 if self.is_live else 0

    def recorded_stacks(self) -> Stacks | None:
        return None if self.is_live else stacks(0)

    def close(self) -> None:
        self.is_closed = True
