"""A worker waits for a lock that one of its own threads holds, while the other workers wait for it.

Python's locks do not record who holds them. allaboard infers it from the code: a thread inside a `with lock:`
block holds that lock, and a lock is identified by the expression there ("self.lock"). So this finding is
likely, not certain.

## Why it matters
Two threads that each hold the lock that the other wants are blocked forever, without CPU and without a
message. A thread that holds a lock while it waits for something slow delays the training as well. A thread
that wants a lock which it holds already is blocked, too, unless the lock is an RLock: this happens in signal
handlers and in `__del__`, which Python may call at any line.

## What to do
Take locks in the same order everywhere. Hold them as briefly as you can, and never across a collective, a
network call or `queue.put`. `lock.acquire(timeout=60)` returns False where a deadlock would wait forever:
raise an exception then, which gives you the line. In a signal handler, set a flag that the training loop
tests, and take no lock.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.stacks.example_awaited import example_awaited
from allaboard.analysis.stalls.lock_holder import find_lock_holder, find_own_lock
from allaboard.analysis.stalls.stall import IDLE_CORES, find_stall, is_still, waiting_evidence
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, Holds, JobView, Member
from allaboard.facts.samples import USER, sample_member, sample_stack


def check(view: JobView) -> Iterator[Claim]:
    stall = find_stall(view)
    if stall is None or not stall.waiting:
        return
    for absent_member in stall.absent:
        if (
            absent_member.is_stopped
            or not is_still(absent_member)
            or absent_member.cpu >= IDLE_CORES
        ):
            continue
        waiter_and_holder = find_lock_holder(absent_member)
        own = find_own_lock(absent_member)
        if waiter_and_holder is not None:
            yield _claim(view, absent_member, *waiter_and_holder, waiting_evidence(stall))
        elif own is not None and own.held_at is not None:
            yield _own_lock_claim(view, absent_member, own, own.held_at, waiting_evidence(stall))


def _own_lock_claim(
    view: JobView, member: Member, thread: Holds, held_at: Frame, peers_evidence: Evidence
) -> Claim:
    """Report a thread that waits for itself."""
    caller = thread.interrupts
    clause = f"; there Python called {caller.function} (a signal handler?)" if caller else ""
    if caller is not None and caller.function == "__del__":
        clause = "; there Python dropped an object and called its __del__"
    outer_place = f"{held_at.file}:{held_at.line}"
    return Claim(
        summary=f"{member.who.name} waits for the lock {thread.wants} at {thread.frame}, which it holds "
        f"itself since {held_at}{clause}",
        who=(member.who,),
        evidence=(
            Evidence(thread.frame.text or "source not readable",
                     f"{thread.frame.file}:{thread.frame.line}"),
            Evidence(f"inside of `with {thread.wants}`: {held_at.text}", outer_place),
            *((Evidence(caller.text, f"{caller.file}:{caller.line}"),) if caller else ()),
            peers_evidence,
        ),
        fix=f"take no lock in {caller.function}: let it set a flag, and act on that in the loop; or make "
        f"{thread.wants} a threading.RLock()"
        if caller is not None
        else f"make {thread.wants} a threading.RLock(), or release it before {outer_place}",
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )  # fmt: skip


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
_HELD = Frame("/home/u/train.py", 21, "flush", "os.fsync(file)")
_HANDLER = Frame("/home/u/train.py", 50, "on_alarm", "flush()")
_CALLS = Frame("/home/u/train.py", 61, "save", "flush()")


def _locked_view(*threads: Holds) -> JobView:
    sampled_stack = msgspec.structs.replace(sample_stack(_MAIN, USER), threads=threads)
    return example_awaited(sample_member(1, stack=sampled_stack))


RULE = Rule(
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
        "a signal handler wants the lock that the code which it interrupted holds": (
            _locked_view(Holds(_MAIN, "cache", ("cache",), _HELD, _HANDLER)),
            "worker 1 waits for the lock cache at train.py:20 in flush, which it holds itself since "
            "train.py:21 in flush; there Python called on_alarm (a signal handler?)",
        ),
        "a function calls another one that wants the lock which it holds": (
            _locked_view(Holds(_MAIN, "cache", ("cache",), _CALLS)),
            "worker 1 waits for the lock cache at train.py:20 in flush, which it holds itself since "
            "train.py:61 in save",
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
    passes=True,
    drill=("two-locks", "own-lock"),
)
