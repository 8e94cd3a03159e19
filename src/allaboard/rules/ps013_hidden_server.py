"""A worker's session cannot see a server on which variables are placed.

## Why it matters
`device_filters` limits the tasks that a session sees, so that it need not wait for the others. If the list
excludes a parameter server, TensorFlow fails with `Cannot assign a device for operation ...` and about a
hundred lines of the graph, none of which names the filter.

No member waits. The server is running, but this worker is configured to ignore it.

## What to do
List all servers by their job, and the worker itself: `device_filters=["/job:ps", "/job:worker/task:N"]`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import name_members
from allaboard.analysis.parameter_servers import task_name
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Raised
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import ps_member, sample_job
from allaboard.late_pattern import compile_late

FILTERS_NOTE = "device_filters"
"""Note of the probe with the device_filters of the session."""
_FILTER = compile_late(r"/job:(?P<job>[^/]+)(?:/replica:\d+)?(?:/task:(?P<task>\d+))?")


def check(view: JobView) -> Iterator[Claim]:
    for member in view.members:
        filters = member.notes.get(FILTERS_NOTE, "").split()
        raised = member.raised
        if not filters or raised is None or raised.type != "InvalidArgumentError":
            continue
        cluster = member.declared.cluster if member.declared is not None else {}
        hidden = [t for t in cluster if t.startswith("ps:") and not _can_see(filters, t)]
        if hidden:
            yield _claim(view, member, filters, hidden)


def _can_see(filters: list[str], task_: str) -> bool:
    job, _, index = task_.partition(":")
    for text in filters:
        match = _FILTER.match(text)
        if match is None or match["job"] != job:
            continue
        if match["task"] is None or match["task"] == index:
            return True
    return False


def _claim(view: JobView, member: Member, filters: list[str], hidden: list[str]) -> Claim:
    hidden_members = [m for m in view.alive if f"{m.who.job}:{m.who.index}" in hidden]
    servers = ", ".join(t.replace(":", " ") for t in hidden)
    alive = (
        (f"{name_members(hidden_members)} {'are' if len(hidden_members) > 1 else 'is'} running")
        if hidden_members
        else ""
    )
    assert member.raised is not None
    return Claim(
        summary=f"{task_name(member)} cannot see {servers}: the device_filters of its session "
        f"exclude {'it' if len(hidden) == 1 else 'them'}",
        who=(member.who,),
        evidence=(
            Evidence(" ".join(filters), "device_filters of its ConfigProto"),
            *((Evidence(alive, "process"),) if alive else ()),
            Evidence(
                member.raised.type,
                f"{member.raised.where}" if member.raised.where else "its exception",
            ),
        ),
        fix=f'device_filters=["/job:ps", "/job:{member.who.job}/task:{member.who.index}"]',
        certainty=Certainty.LIKELY,
        since=member.raised.raised_at,
    )


_RAISED = Raised(type="InvalidArgumentError", message="Graph execution error", raised_at=90.0)


def _worker(filters: str, **changes: object) -> Member:
    fields: dict[str, object] = {"notes": {FILTERS_NOTE: filters}, "raised": _RAISED, "step": 0}
    return ps_member("worker", 1, **(fields | changes))


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("raised",),
    fires_on={
        "the device filters list another server only": (
            sample_job(_worker("/job:ps/task:1 /job:worker/task:1"), ps_member("ps", 0)),
            "worker 1 cannot see ps 0: the device_filters of its session exclude it",
        ),
        "the device filters list only the worker itself": (
            sample_job(_worker("/job:worker/task:1"), ps_member("ps", 0)),
            "worker 1 cannot see ps 0: the device_filters of its session exclude it",
        ),
    },
    silent_on={
        "the device filters list all servers by their job": sample_job(
            _worker("/job:ps /job:worker/task:1"), ps_member("ps", 0)
        ),
        "the device filters list the server by its number": sample_job(
            _worker("/job:ps/replica:0/task:0 /job:worker"), ps_member("ps", 0)
        ),
        "the worker raised another exception": sample_job(
            _worker("/job:worker", raised=Raised(type="KeyError", message="x", raised_at=90.0)),
            ps_member("ps", 0),
        ),
        "the session has no device filters": sample_job(_worker(""), ps_member("ps", 0)),
    },
    retry=Retry.NEVER,
    drill=("ps-hidden",),
)
