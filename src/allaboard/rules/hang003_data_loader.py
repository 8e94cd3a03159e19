"""A worker waits for its next batch while the others wait for it, or all workers wait for data.

## Why it matters
There is no error if a DataLoader worker is stopped, hangs on a lock that it inherited by fork, or reads from
a mount that does not answer. The training process waits in `next()`, and its peers wait in the collective.
The `timeout=` of a DataLoader does not help if its worker was stopped while it was passing on a batch.

If all workers wait for data, this is a warning: after a minute without any CPU, read or write, or at once if
a process of the loader is stopped.

## What to do
If a process is stopped, resume it with `kill -CONT PID`. Otherwise look at the line at which the loader's
process stands, or at each of its processes with `py-spy dump --pid PID`. Run once with `num_workers=0` to
see the real exception. `timeout=` on the DataLoader bounds the wait.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.member_names import command_on_host
from allaboard.analysis.stacks.example_awaited import example_awaited
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.child_process import (
    advise_forked,
    describe_stopped_children,
    lone_waiter_evidence,
    resume_command,
    stopped_children_evidence,
)
from allaboard.analysis.stalls.dead_threads import dead_thread_advice, dead_thread_evidence
from allaboard.analysis.stalls.input_generator import generator_may_deliver
from allaboard.analysis.stalls.stall import IDLE_CORES, find_stall, is_still, waiting_evidence
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Member, Severity
from allaboard.facts.samples import USER, sample_member, sample_stack, stalled_job, waiting_member

MIN_ALL_STARVED_S = 60.0
"""Seconds without data and without any activity before it is reported if no member waits for a peer: slow
storage is slow for all of them."""

MAX_SHOWN_LOADERS = 3
"""Loader processes whose places are shown."""


def check(view: JobView) -> Iterator[Claim]:
    stall = find_stall(view)
    if stall is None:
        return
    starved = [m for m in stall.absent if _is_starved(view, m)]
    if stall.waiting:
        for starved_member in starved:
            yield _claim(view, starved_member, "; the others wait for it", waiting_evidence(stall))
    elif len(starved) == len(stall.absent) and not stall.gil_blocked:
        with_stopped_loader = [m for m in starved if describe_stopped_children(m)]
        for starved_member in with_stopped_loader:
            yield _claim(view, starved_member)
        if (
            starved
            and not with_stopped_loader
            and view.now - stalled_since(view) >= MIN_ALL_STARVED_S
        ):
            yield _claim_all(view, starved)


def _is_starved(view: JobView, member: Member) -> bool:
    """Return True if the member waits for data and nothing below it works on that. CPU and bytes include the
    loader's processes: while these are active, the batch is only slow."""
    if (
        member.is_stopped
        or not is_still(member)
        or member.cpu >= IDLE_CORES
        or generator_may_deliver(view, member)
    ):
        return False
    return classify_stack(member.stack) is Spot.DATA


def _claim(view: JobView, member: Member, suffix: str = "", *peers_evidence: Evidence) -> Claim:
    assert member.stack is not None
    user_frame = member.stack.user
    location = f" at {user_frame}" if user_frame is not None else ""
    leaf = member.stack.frames[0]
    stopped = describe_stopped_children(member)
    cause = stopped or _loader_place(member)
    return Claim(
        summary=f"{member.who.name} waits for data{location}{', and ' if cause else ''}{cause}{suffix}",
        who=(member.who,),
        evidence=(
            Evidence(
                f"in {leaf} for {view.now - stalled_since(view):.0f} s, no CPU", member.stack.by
            ),
            *stopped_children_evidence(member),
            *dead_thread_evidence(member),
            *_loader_evidence(member),
            *lone_waiter_evidence(member),
            *peers_evidence,
        ),
        fix=resume_command(view, member)
        or dead_thread_advice(member, user_frame or leaf)
        or _loader_fix(view, member)
        or command_on_host(view, member, f"pgrep -P {member.who.pid} | xargs -n1 py-spy dump --pid")
        + "   # its loader processes",
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


def _loader_place(member: Member) -> str:
    """Return "its loader process 4711 stands at data.py:9 in read"; "" if none is in the user's own code."""
    loaders = member.stack.loaders if member.stack is not None else ()
    if not loaders:
        return ""
    pid, frame = loaders[0]
    return f"its loader process {pid} stands at {frame}"


def _loader_evidence(member: Member) -> Iterator[Evidence]:
    """Yield the place and the line of each loader process in the user's own code."""
    loaders = member.stack.loaders if member.stack is not None else ()
    for pid, frame in loaders[:MAX_SHOWN_LOADERS]:
        yield Evidence(
            f"process {pid} at {frame}" + (f": {frame.text}" if frame.text else ""), "py-spy"
        )


def _loader_fix(view: JobView, member: Member) -> str:
    """Return where to look, and the command that shows a loader process's variables; "" if none is known."""
    loaders = member.stack.loaders if member.stack is not None else ()
    if not loaders:
        return ""
    if advice := advise_forked(member):
        return advice
    pid, frame = loaders[0]
    command = command_on_host(view, member, f"py-spy dump --locals --pid {pid}")
    return f"see what {frame.function} waits for at {frame.file}:{frame.line}; {command}"


def _claim_all(view: JobView, starved: list[Member]) -> Claim:
    first_member = starved[0]
    assert first_member.stack is not None
    location = f" at {first_member.stack.user}" if first_member.stack.user is not None else ""
    duration = f"{view.now - stalled_since(view):.0f} s"
    subject = (
        f"all {len(starved)} members wait" if starved[1:] else f"{first_member.who.name} waits"
    )
    return Claim(
        summary=f"{subject} for data{location}; no progress for {MIN_ALL_STARVED_S:.0f} s",
        who=tuple(m.who for m in starved),
        evidence=(
            Evidence(
                f"in {first_member.stack.frames[0]} for {duration}, no CPU", first_member.stack.by
            ),
            Evidence("neither the workers nor their child processes read, write or send", "/proc"),
            *(e for m in starved for e in dead_thread_evidence(m)),
        ),
        fix=command_on_host(
            view, first_member, f"pgrep -P {first_member.who.pid} | xargs -n1 py-spy dump --pid"
        )
        + "   # its loader processes, and what they wait for",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


_NEXT = Frame("/v/lib/python3.11/site-packages/torch/utils/data/dataloader.py", 1280, "_get_data")
_OPTIONAL = Frame(
    "/v/site-packages/tensorflow/python/data/ops/iterator_ops.py", 600, "get_next_as_optional"
)
_SLEEPS = Frame("/home/u/train.py", 29, "rows", "time.sleep(.012)")
_POLL = Frame("/usr/lib/python3.11/multiprocessing/connection.py", 931, "wait")
_HALTED = msgspec.structs.replace(sample_stack(_POLL, _NEXT, USER), stopped=((4711, 3.2),))
_READS = Frame("/home/u/data.py", 9, "read", "pipe.read()")
_LOADING = msgspec.structs.replace(sample_stack(_POLL, _NEXT, USER), loaders=((4711, _READS),))
RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "a DataLoader delivers no batch, and the others wait in a collective": (
            example_awaited(sample_member(1, stack=sample_stack(_POLL, _NEXT, USER))),
            "worker 1 waits for data at train.py:41 in train; the others wait for it",
        ),
        "a process of the DataLoader stands in the user's code": (
            example_awaited(sample_member(1, stack=_LOADING)),
            "worker 1 waits for data at train.py:41 in train, and its loader process 4711 stands at "
            "data.py:9 in read; the others wait for it",
        ),
        "a process of the DataLoader is stopped, and the other workers wait": (
            example_awaited(sample_member(1, stack=_HALTED)),
            "worker 1 waits for data at train.py:41 in train, and its process 4711 is stopped (SIGSTOP or "
            "Ctrl-Z); the others wait for it",
        ),
        "a process of the DataLoader is stopped in a job of one worker": (
            stalled_job(sample_member(0, stack=_HALTED)),
            "worker 0 waits for data at train.py:41 in train, and its process 4711 is stopped (SIGSTOP or "
            "Ctrl-Z)",
        ),
        "no worker has received data for a minute": (
            stalled_job(
                *(sample_member(r, stack=sample_stack(_POLL, _NEXT, USER)) for r in range(2)),
                progress_at=39.0,
            ),
            "all 2 members wait for data at train.py:41 in train; no progress for 60 s",
        ),
        "a `tf.data` pipeline that delivers no batch": (
            stalled_job(waiting_member(0), sample_member(1, stack=sample_stack(_OPTIONAL, USER))),
            "worker 1 waits for data at train.py:41 in train; the others wait for it",
        ),
    },
    silent_on={
        "a DataLoader whose processes use the CPU": example_awaited(
            sample_member(1, stack=sample_stack(_POLL, _NEXT, USER), cpu=0.9)
        ),
        "a generator fills a buffer of `tf.data`, and sleeps between its batches": stalled_job(
            waiting_member(0),
            sample_member(
                1,
                cpu=0.06,
                stack=msgspec.structs.replace(sample_stack(_OPTIONAL, USER), fed_by=(_SLEEPS,)),
            ),
        ),
        "all workers wait for data, and one of them still reads from storage": stalled_job(
            sample_member(0, stack=sample_stack(_POLL, _NEXT, USER), io=2e5),
            sample_member(1, stack=sample_stack(_POLL, _NEXT, USER)),
            progress_at=39.0,
        ),
        "all workers have waited for data for 10 seconds": stalled_job(
            *(sample_member(r, stack=sample_stack(_POLL, _NEXT, USER)) for r in range(3))
        ),
    },
    passes=True,
    drill=("stuck-in-data-loader", "loader-worker-stopped"),
)
