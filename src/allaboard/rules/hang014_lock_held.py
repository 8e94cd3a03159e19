"""A worker waits for a lock that another of its threads holds, while the other workers wait for it.

Python's locks do not record who holds them. allaboard infers it from the code: a thread inside a `with lock:`
block holds that lock, and a lock is identified by the expression there ("self.lock"). So this finding is
likely, not certain.

## Why it matters
Two threads that each hold the lock that the other wants are blocked forever, without CPU and without a
message. A thread that holds a lock while it waits for something slow delays the training as well.

## What to do
Take locks in the same order everywhere. Hold them as briefly as you can, and never across a collective, a
network call or `queue.put`. `lock.acquire(timeout=60)` returns False where a deadlock would wait forever:
raise an exception then, which gives you the line.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.stalls.lock_holder import find_lock_holder
from allaboard.analysis.stalls.stall import IDLE_CORES, find_stall, is_still, waiting_evidence
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, Holds, JobView, Member, Stage
from allaboard.facts.samples import USER, sample_member, sample_stack, stalled_job, waiting_member


def check(view: JobView) -> Iterator[Claim]:
    stall = find_stall(view)
    if stall is None or not stall.waiting:
        return
    for absent_member in stall.absent:
        waiter_and_holder = find_lock_holder(absent_member)
        if (
            waiter_and_holder is not None
            and not absent_member.is_stopped
            and is_still(absent_member)
            and absent_member.cpu < IDLE_CORES
        ):
            yield _claim(view, absent_member, *waiter_and_holder, waiting_evidence(stall))


def _claim(
    view: JobView, member: Member, waiter: Holds, holder: Holds, peers_evidence: Evidence
) -> Claim:
    name = member.who.name
    is_deadlock = bool(holder.wants) and holder.wants in waiter.holds
    holder_text = f"which another thread holds at {holder.frame}"
    if is_deadlock:
        holder_text = (
            f"and the thread that holds it waits for {holder.wants} at {holder.frame}: a deadlock"
        )
    return Claim(
        summary=f"{name} waits for the lock {waiter.wants} at {waiter.frame}, {holder_text}",
        who=(member.who,),
        evidence=(
            Evidence(
                _describe_locks("main thread", waiter), f"{waiter.frame.file}:{waiter.frame.line}"
            ),
            Evidence(
                _describe_locks("other thread", holder), f"{holder.frame.file}:{holder.frame.line}"
            ),
            peers_evidence,
        ),
        fix="take the two locks in the same order everywhere"
        if is_deadlock
        else f"see why the lock is held so long at {holder.frame.file}:{holder.frame.line}",
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


def _describe_locks(thread_name: str, thread: Holds) -> str:
    holds = f"holds {', '.join(thread.holds)}" if thread.holds else "holds no lock that is visible"
    return f"{thread_name} {holds}" + (f", wants {thread.wants}" if thread.wants else "")


_MAIN = Frame("/home/u/train.py", 20, "flush", "with cache:")
_OTHER = Frame("/home/u/train.py", 31, "fill", "with log:")
_READ = Frame("/home/u/train.py", 40, "fetch", "reply = read()")


def _locked_view(*threads: Holds) -> JobView:
    sampled_stack = msgspec.structs.replace(sample_stack(_MAIN, USER), threads=threads)
    return stalled_job(waiting_member(0), sample_member(1, stack=sampled_stack), waiting_member(2))


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "two threads that each wait for the lock that the other holds": (
            _locked_view(Holds(_MAIN, "cache", ("log",)), Holds(_OTHER, "log", ("cache",))),
            "worker 1 waits for the lock cache at train.py:20 in flush, and the thread that holds it "
            "waits for log at train.py:31 in fill: a deadlock",
        ),
        "the lock is held by a thread that reads": (
            _locked_view(Holds(_MAIN, "cache"), Holds(_READ, "", ("cache",))),
            "worker 1 waits for the lock cache at train.py:20 in flush, which another thread holds at "
            "train.py:40 in fetch",
        ),
    },
    silent_on={
        "no thread is known to hold the lock": _locked_view(
            Holds(_MAIN, "cache"), Holds(_READ, "", ("self.other",))
        ),
        "the process has no other thread that could hold the lock": _locked_view(
            Holds(_MAIN, "cache", ("log",))
        ),
    },
    since="0.1",
    passes=True,
    drill=("two-locks",),
)
