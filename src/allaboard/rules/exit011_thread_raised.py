"""A training thread raised an exception, but its worker exited with code 0.

## Why it matters
An exception in a thread ends only that thread: Python prints it and continues. If the main thread only waits
until the thread is no longer alive, the worker then exits with code 0. The launcher, the batch system and
every script that reads the exit code consider the job successful, although the training stopped half-way. The
others lose their peer, perhaps in a thread too, and exit with code 0 as well.

This is a warning if the thread ran the training's steps or called collectives. It is only a note for a thread
that did neither (an uploader, a progress bar), or if the training went on afterwards. Cancelled work
(`CancelledError`) is not reported: closing a session ends its queue runners that way.

## What to do
Fix the line that raised. Pass the exception to the main thread: store it and raise it after `join()`, or run
the training with `concurrent.futures` and call `future.result()`, which raises it there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from allaboard.analysis.failures.failure_causality import SAME_CAUSE_WINDOW_S, order_failures
from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.analysis.member_names import name_by_rank, name_members
from allaboard.analysis.stalls.dead_threads import (
    THREAD_CALLED_NOTE,
    THREAD_ENDED_NOTE,
    THREAD_RAISED_NOTE,
    EndedThread,
    ended_thread,
)
from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, JobView, Member, Raised, Severity
from allaboard.facts.samples import ended_member, sample_job, sample_member, waiting_member

CANCELLED = "CancelledError"
"""The exception of asyncio, concurrent.futures and TensorFlow for work that was cancelled, by the program or
because of a failure that is reported by itself."""
MemberThread = tuple[Member, EndedThread]
"""A member, and one of its threads that ended with an exception."""


def check(view: JobView) -> Iterator[Claim]:
    raised_threads = [(m, t) for m in view.members if (t := ended_thread(m)) is not None]
    failed_threads = [
        (m, t) for m, t in raised_threads if t.error[0].rpartition(".")[2] != CANCELLED
    ]
    lost = [(m, t) for m, t in failed_threads if _lost_peer(m, t)]
    by_error: dict[tuple[str, str, str], list[MemberThread]] = defaultdict(list)
    for member_of_thread, thread in failed_threads:
        if (
            _ended_well(view, member_of_thread)
            and thread.took_part_in != "end"
            and (member_of_thread, thread) not in lost
        ):
            by_error[(thread.error[0], thread.raised_at, thread.took_part_in)].append(
                (member_of_thread, thread)
            )
    for same_failures in by_error.values():
        yield _claim(same_failures, lost)
    if by_error or order_failures(view).root_failures:
        return  # that is the reason why they lost their peer
    peer_losses = [
        (m, t)
        for m, t in lost
        if _ended_well(view, m) and t.took_part_in == "steps" and _stopped_training(m, t)
    ]
    if peer_losses:
        yield _claim(peer_losses, [])


def _ended_well(view: JobView, member: Member) -> bool:
    """Return True if it exited with code 0 and no other rule reports it; only a moment after its exit, in
    which the others may fail."""
    end = member.exit
    if end is None or end.code != 0 or end.ours or member.launcher:
        return False
    return view.ended or view.now - end.ended_at >= SAME_CAUSE_WINDOW_S


def _lost_peer(member: Member, thread: EndedThread) -> bool:
    """Return True if the thread's exception is about a peer. A thread that only called collectives may be cut
    off by the end of a successful training."""
    kind, message = thread.error
    raised = Raised(type=kind, message=message, raised_at=0.0)
    return thread.took_part_in in ("steps", "calls") and has_lost_peer(
        msgspec.structs.replace(member, raised=raised)
    )


def _stopped_training(member: Member, thread: EndedThread) -> bool:
    """Return True if the thread took part in the training, and the training did not continue after it."""
    return thread.took_part_in in ("steps", "calls") and member.step <= thread.step


def _claim(failures: list[MemberThread], lost: list[MemberThread]) -> Claim:
    members = [m for m, _ in failures]
    first_member, thread = failures[0]
    kind, message = thread.error
    stopped_training = _stopped_training(first_member, thread)
    evidence = [
        Evidence(f"{kind}: {message}" if message else kind, thread.raised_at or "its excepthook")
    ]
    if first_member.step:
        later = "" if stopped_training or thread.took_part_in == "nothing" else ", after that"
        evidence.append(Evidence(f"its last step was {first_member.step}{later}", "black box"))
    if stopped_training and lost:
        evidence.append(
            Evidence(
                f"{name_by_rank([m for m, _ in lost])} lost a peer because of it, in a thread too",
                "exceptions of their threads",
            )
        )
    file, _, line = thread.raised_at.partition(":")
    location = f" at {file.rpartition('/')[2]}:{line}" if thread.raised_at else ""
    thread_name = f"thread {thread.name}" if thread.name else "a thread"
    return Claim(
        summary=f"{thread_name} of {name_members(members)} raised {kind}{location}, but "
        f"{name_members(members)} exited with code 0",
        who=tuple(m.who for m in members),
        evidence=tuple(evidence),
        fix=_fix(first_member, thread)
        if stopped_training
        else f"the worker continued; its output is in {first_member.log}",
        severity=Severity.WARNING if stopped_training else Severity.INFO,
        since=first_member.exit.ended_at if first_member.exit is not None else None,
    )


def _fix(member: Member, thread: EndedThread) -> str:
    line = thread.raised_at.partition(" in ")[0]
    fix_line = f"fix {line}" if line else f"see its exception in {member.log}"
    return (
        f"{fix_line}; and let the worker fail with its thread: store its exception and raise it "
        "after join(), or use concurrent.futures and call future.result()"
    )


_SAID = "KeyError: 'label_17' at /home/u/train.py:18 in trainer"
_PEER = (
    "RuntimeError: Connection closed by peer [127.0.0.1]:47333 at /home/u/train.py:21 in trainer"
)

_QUEUE = (
    "CancelledError: Step was cancelled by an explicit call to `Session::Close()`. at "
    "/usr/lib/python3.11/threading.py:1045 in _bootstrap_inner"
)


def _notes(error: str = _SAID, role: str = "steps", step: int = 40) -> dict[str, object]:
    return {
        "notes": {
            THREAD_RAISED_NOTE: error,
            THREAD_CALLED_NOTE: "",
            THREAD_ENDED_NOTE: f"{step} {role} trainer",
        }
    }


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("exit",),
    fires_on={
        "a training thread raised KeyError, and that of the other worker lost its peer": (
            sample_job(
                ended_member(0, code=0, member=_notes(_PEER)),
                ended_member(1, code=0, member=_notes()),
                ended=True,
            ),
            "thread trainer of worker 1 raised KeyError at train.py:18 in trainer, but worker 1 exited "
            "with code 0",
        ),
        "a thread that neither trained nor called collectives raised an exception": (
            sample_job(
                ended_member(0, code=0), ended_member(1, code=0, member=_notes(role="nothing"))
            ),
            "thread trainer of worker 1 raised KeyError at train.py:18 in trainer, but worker 1 exited "
            "with code 0",
        ),
        "a training thread lost its peer, and no worker failed": (
            sample_job(ended_member(0, code=0, member=_notes(_PEER)), ended_member(1, code=0)),
            "thread trainer of worker 0 raised RuntimeError at train.py:21 in trainer, but worker 0 "
            "exited with code 0",
        ),
    },
    silent_on={
        "the worker exited half a second ago": sample_job(
            waiting_member(0), ended_member(1, ended_at=99.5, code=0, member=_notes())
        ),
        "the worker whose thread raised an exception still trains": sample_job(
            waiting_member(0), sample_member(1, **_notes())
        ),
        "the worker whose thread raised an exception exited with code 1": sample_job(
            waiting_member(0), ended_member(1, code=1, member=_notes())
        ),
        "a training thread lost its peer because another worker was killed": sample_job(
            ended_member(0, code=0, member=_notes(_PEER)), ended_member(1, ended_at=91.9, signal=9)
        ),
        "the end of the training cut off a thread that only called collectives": sample_job(
            ended_member(0, code=0, member=_notes(_PEER, role="calls")), ended_member(1, code=0)
        ),
        "TensorFlow cancelled a queue runner when its session was closed": sample_job(
            ended_member(0, code=0, member=_notes(_QUEUE, role="nothing")), ended_member(1, code=0)
        ),
        "a thread raised an exception while the interpreter was ending": sample_job(
            ended_member(1, code=0, member=_notes(role="end"))
        ),
    },
    drill=("trainer-raises",),
)
