"""The job made no progress until the limit of `--hang-after` or until it was interrupted, for no known cause.

## Why it matters
With `--on-hang stop`, a job is ended once it has stood still for that long, whatever the cause. A job that
stands still is often ended by a person, or by its time limit. This finding names the members that do not wait
for others, and where they are: the reason is at one of these places. It is the last resort, and given only
where no other finding explains the hang.

## What to do
Look at the line that is named. A worker that waits for an answer (a socket, a database, a queue on another
host) waits for ever if it has no timeout: give the call one. A worker that computes may be in a loop that
never ends, or at work that takes longer than `--hang-after` allows: then raise that limit.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.queued_calls import reads_device_value
from allaboard.analysis.member_names import command_on_host, conjugate_verb, name_first_members
from allaboard.analysis.parameter_servers import only_serves
from allaboard.analysis.stacks.example_awaited import example_awaited
from allaboard.analysis.stalls.awaited_end import awaited_end_clause
from allaboard.analysis.stalls.hang_limit import is_over_hang_limit
from allaboard.analysis.stalls.interrupted_stall import is_interrupted_in_stall
from allaboard.analysis.stalls.lock_kind import describe_wait
from allaboard.analysis.stalls.stall import (
    IDLE_CORES,
    find_stall,
    member_waits_for_peers,
    waiting_evidence,
)
from allaboard.analysis.stalls.stalled_members import stalled_members, stalled_since
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Severity, Spent
from allaboard.facts.member import Exit, Member, Op
from allaboard.facts.samples import (
    NOW,
    USER,
    ps_member,
    sample_job,
    sample_member,
    sample_stack,
    stalled_job,
    waiting_member,
)

MAX_SHOWN_PLACES = 4
"""Members whose place is part of the evidence."""


def check(view: JobView) -> Iterator[Claim]:
    if view.ending:
        return
    limit = f"--hang-after {view.hang_limit:g}" if view.hang_limit is not None else ""
    severity = Severity.ERROR
    if view.hang_limit is None or not is_over_hang_limit(view, view.hang_limit):
        if not is_interrupted_in_stall(view):
            return
        limit, severity = "until the job was interrupted", Severity.WARNING
    members = _members_elsewhere(view)
    if members:
        yield _claim(view, members, limit, severity)


def _members_elsewhere(view: JobView) -> tuple[Member, ...]:
    """Return the members that may hold up the job: those that do not wait for others, else all of them."""
    stall = find_stall(view)
    if stall is not None and (stall.absent or stall.gil_blocked):
        return stall.absent + stall.gil_blocked
    candidates = stalled_members(view) or tuple(m for m in view.alive if not m.launcher)
    trainers = tuple(m for m in candidates if not only_serves(m)) or candidates
    return tuple(m for m in trainers if not member_waits_for_peers(m)) or trainers


def _claim(view: JobView, members: tuple[Member, ...], limit: str, severity: Severity) -> Claim:
    # A member that was sampled says where to look, so it is named first.
    members = tuple(sorted(members, key=lambda m: m.stack is None))
    first = members[0]
    more = (
        f" (and so for {name_first_members(members[1:])}: see the evidence)"
        if len(members) > 1
        else ""
    )
    silence = view.now - stalled_since(view)
    return Claim(
        summary=f"{first.who.name} does not go on: {_describe_place(first)}{more}{_others(view)}",
        who=tuple(m.who for m in members),
        evidence=(
            Evidence(f"no progress for {silence:.0f} s ({limit})", "black box"),
            *(
                Evidence(
                    f"{m.who.name}: {_describe_activity(m)}", m.stack.by if m.stack else "/proc"
                )
                for m in members[:MAX_SHOWN_PLACES]
            ),
            *_peers_evidence(view),
            *_source_line(first),
        ),
        fix=command_on_host(view, first, f"py-spy dump --locals --pid {first.who.pid}")
        + _line_to_check(first),
        severity=severity,
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


def _describe_place(member: Member) -> str:
    if member.is_stopped:
        return "it is stopped"
    if member.stack is None or not member.stack.frames:
        return "its stack could not be read"
    activity = awaited_end_clause(member) or describe_wait(member.stack)
    if reads_device_value(member.stack):
        activity = "waiting for its own GPU"
    return f"it is {activity} at {member.stack.main_frame}"


def _describe_activity(member: Member) -> str:
    busy = f"{member.cpu * 100:.0f} % of a core" if member.cpu > 0.02 else "no CPU"
    activity = f"{busy}, state {member.os_state}" if member.os_state else busy
    if member.stack is None or not member.stack.frames:
        return activity
    return f"{member.stack.main_frame}, {activity}"


def _others(view: JobView) -> str:
    """Return what the other members do meanwhile, as the end of a sentence."""
    stall = find_stall(view)
    if stall is not None and stall.waiting and stall.absent:
        return (
            f"; {name_first_members(stall.waiting)} {conjugate_verb('wait', stall.waiting)} for it"
        )
    done = [m for m in view.members if m.exit is not None and not m.launcher]
    if done:
        return f"; {name_first_members(done)} {'have' if len(done) > 1 else 'has'} exited"
    return ""


def _peers_evidence(view: JobView) -> tuple[Evidence, ...]:
    stall = find_stall(view)
    return (waiting_evidence(stall),) if stall is not None and stall.waiting else ()


def _source_line(member: Member) -> tuple[Evidence, ...]:
    if member.stack is None or not member.stack.frames:
        return ()
    frame = member.stack.main_frame
    return (Evidence(frame.text or "source not readable", f"{frame.file}:{frame.line}"),)


def _line_to_check(member: Member) -> str:
    if member.stack is None or not member.stack.frames:
        return ""
    frame = member.stack.main_frame
    cause = "why it computes for so long" if member.cpu >= IDLE_CORES else "what it waits for"
    return f"   # {cause} at {frame.file}:{frame.line}"


_RECEIVES = sample_stack(
    Frame("/home/u/train.py", 33, "fetch_labels", "reply = connection.recv(4096)"), USER
)
_READS_GPU = sample_stack(Frame("/home/u/train.py", 33, "train", "total += loss.item()"), USER)
_SPIN = sample_stack(Frame("/home/u/train.py", 12, "wait_for_lock", "while not free():"), USER)
_ENDED = ps_member("worker", 0, exit=Exit(ended_at=60.0, code=0))
_LIMIT = {"hang_limit": 8.0}
_INTERRUPTED = {"progress_at": NOW - 30.0, "interrupted_at": NOW - 0.1}
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a worker waits for an answer beyond the limit of `--hang-after`": (
            example_awaited(sample_member(1, stack=_RECEIVES), **_LIMIT),
            "worker 1 does not go on: it is waiting for the answer of another process at train.py:33 in "
            "fetch_labels; worker 0, worker 2 wait for it",
        ),
        "a worker of an asynchronous job computes beyond the limit of `--hang-after`": (
            stalled_job(
                _ENDED, ps_member("worker", 1, stack=_SPIN, cpu=1.0), ps_member("ps", 0), **_LIMIT
            ),
            "worker 1 does not go on: it is in its own code at train.py:12 in wait_for_lock; worker 0 has "
            "exited",
        ),
        "the job is interrupted after it has stood still for 30 seconds": (
            stalled_job(waiting_member(0), sample_member(1, stack=_RECEIVES), **_INTERRUPTED),
            "worker 1 does not go on: it is waiting for the answer of another process at train.py:33 in "
            "fetch_labels; worker 0 waits for it",
        ),
        "a GPU that has not finished at the limit of `--hang-after`": (
            stalled_job(waiting_member(0), sample_member(1, stack=_READS_GPU, cpu=1.0), **_LIMIT),
            "worker 1 does not go on: it is waiting for its own GPU at train.py:33 in train; worker 0 waits "
            "for it",
        ),
        "the stack of the only worker that does not wait could not be read": (
            stalled_job(waiting_member(0, stack=None), sample_member(1), **_LIMIT),
            "worker 1 does not go on: its stack could not be read",
        ),
        "all workers wait in a collective beyond the limit of `--hang-after`": (
            stalled_job(waiting_member(0), waiting_member(1), **_LIMIT),
            "worker 0 does not go on: it is in a collective at train.py:41 in train (and so for worker 1: "
            "see the evidence)",
        ),
    },
    silent_on={
        "no limit is set with `--hang-after`": example_awaited(sample_member(1, stack=_RECEIVES)),
        "the limit of `--hang-after` is not reached": stalled_job(
            waiting_member(0), sample_member(1, stack=_RECEIVES), hang_limit=600.0
        ),
        "the job makes progress": sample_job(
            waiting_member(0), sample_member(1, stack=_RECEIVES), waiting_member(2), **_LIMIT
        ),
        "the job is interrupted while it makes progress": sample_job(
            waiting_member(0), sample_member(1, stack=_RECEIVES), interrupted_at=NOW - 0.1
        ),
        "the job is interrupted after it has stood still for 10 seconds": stalled_job(
            waiting_member(0), sample_member(1, stack=_RECEIVES), interrupted_at=NOW - 0.1
        ),
        "the job is interrupted while all workers seen here wait": stalled_job(
            waiting_member(0), waiting_member(1), **_INTERRUPTED
        ),
        "the job is interrupted while workers are idle for whom no other waits": stalled_job(
            sample_member(0, stack=_RECEIVES), sample_member(1, stack=_RECEIVES), **_INTERRUPTED
        ),
        "a debugger holds the worker": stalled_job(
            waiting_member(0), sample_member(1, stack=_RECEIVES, os_state="t"), **_LIMIT
        ),
        "bytes still flow in the collective in which all wait": stalled_job(
            waiting_member(0, traffic=2e6),
            waiting_member(1, op=Op("all_reduce", 41, 90.0)),
            **_LIMIT,
        ),
        "one worker computes in its evaluation while the other waits": stalled_job(
            waiting_member(0),
            sample_member(
                1, stack=sample_stack(USER, moving=True), cpu=1.0, spent=Spent(now="evaluation")
            ),
            **_LIMIT,
        ),
    },
    passes=True,
    relations=Relations(last_resort=True, explains_signal=True),
    drill=("waits-for-an-answer", "ps-worker-spins"),
)
