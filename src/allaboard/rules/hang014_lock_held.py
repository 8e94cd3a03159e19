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
from allaboard.facts.samples import USER, member, stack, stalled, waiting


def check(view: JobView) -> Iterator[Claim]:
    found = find_stall(view)
    if found is None or not found.waiting:
        return
    for one in found.absent:
        held = find_lock_holder(one)
        if held is not None and not one.stopped and is_still(one) and one.cpu < IDLE_CORES:
            yield _claim(view, one, *held, waiting_evidence(found))


def _claim(view: JobView, one: Member, main: Holds, other: Holds, others: Evidence) -> Claim:
    name = one.who.name
    both = bool(other.wants) and other.wants in main.holds
    told = f"which another thread holds at {other.at}"
    if both:
        told = f"and the thread that holds it waits for {other.wants} at {other.at}: a deadlock"
    return Claim(
        summary=f"{name} waits for the lock {main.wants} at {main.at}, {told}",
        who=(one.who,),
        evidence=(
            Evidence(_words("main thread", main), f"{main.at.file}:{main.at.line}"),
            Evidence(_words("other thread", other), f"{other.at.file}:{other.at.line}"),
            others,
        ),
        fix="take the two locks in the same order everywhere"
        if both
        else f"see why the lock is held so long at {other.at.file}:{other.at.line}",
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


def _words(who: str, thread: Holds) -> str:
    holds = f"holds {', '.join(thread.holds)}" if thread.holds else "holds no lock that is visible"
    return f"{who} {holds}" + (f", wants {thread.wants}" if thread.wants else "")


_MAIN = Frame("/home/u/train.py", 20, "flush", "with cache:")
_OTHER = Frame("/home/u/train.py", 31, "fill", "with log:")
_READ = Frame("/home/u/train.py", 40, "fetch", "reply = read()")


def _locked(*threads: Holds) -> JobView:
    seen = msgspec.structs.replace(stack(_MAIN, USER), threads=threads)
    return stalled(waiting(0), member(1, stack=seen), waiting(2))


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "each waits for the other's lock": (
            _locked(Holds(_MAIN, "cache", ("log",)), Holds(_OTHER, "log", ("cache",))),
            "worker 1 waits for the lock cache at train.py:20 in flush, and the thread that holds it "
            "waits for log at train.py:31 in fill: a deadlock",
        ),
        "held by a thread that reads": (
            _locked(Holds(_MAIN, "cache"), Holds(_READ, "", ("cache",))),
            "worker 1 waits for the lock cache at train.py:20 in flush, which another thread holds at "
            "train.py:40 in fetch",
        ),
    },
    silent_on={
        "no thread is known to hold it": _locked(
            Holds(_MAIN, "cache"), Holds(_READ, "", ("self.other",))
        ),
        "no other thread": _locked(Holds(_MAIN, "cache", ("log",))),
    },
    since="0.1",
    passes=True,
    drill=("two-locks",),
)
