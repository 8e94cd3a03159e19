"""A worker stays at one place in its own code while the others wait for it.

## Why it matters
A loop that never ends, a condition that never comes true, retries without a limit: the process is alive,
perhaps at full CPU, and its peers stand in their next collective until a timeout that names nobody.

Three cases are reported only after a minute, since they often take long for a good reason:

- a library call that never returns (a regular expression that backtracks);
- a checkpoint that fails again and again (a full disk) while the program keeps trying;
- a child process that does nothing.

## What to do
Look at the line. `py-spy dump --locals --pid PID` shows what it is doing there.

A long computation that only one rank does (a metric, an evaluation in plain Python) looks the same from
outside. If that is what it is, give the others a longer timeout, or do it after the barrier. If the
function's name says what it does (`evaluate`, `compute_metrics`, `rollout`, `generate`), you first see
"waiting" for a minute, and this finding only after that.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.contracts import Rule
from allaboard.evidence.child_process import awaits_child, child_of, commands_of, look_at_child
from allaboard.evidence.naming import on_host
from allaboard.evidence.pauses import patient
from allaboard.evidence.rewritten import rewritten
from allaboard.evidence.spot import Spot, spot
from allaboard.evidence.stall import IDLE, IO_MOVING, stall, still, waiting_where
from allaboard.evidence.standing import stood_since
from allaboard.evidence.thread_ended import mend_thread, thread_ended
from allaboard.evidence.unsaved import NOTE, Unsaved, unsaved
from allaboard.facts import (
    Certainty,
    Claim,
    Evidence,
    Exit,
    Frame,
    JobView,
    Member,
    Op,
    Severity,
    Spent,
    Stage,
)
from allaboard.facts.samples import REDUCE, USER, member, stack, stalled, task, waiting

BUSY_LOOKS, BUSY_SPAN = 6, 2.0
"""Looks at one place, and the seconds over them, before a member that uses its CPU is said to stay there."""
CHILD_MAY = 60.0
"""Seconds that a member may wait for a child process that shows no CPU and no I/O; HANG018 tells of it."""
LONG_CALL = 60.0
"""Seconds in one call of a library, with its CPU busy, before that is told: most that end do so before."""
FEW = 10
"""Collectives that a member may have been in before its training begins: models are compared and spread."""
_PLACES = (Spot.USER, Spot.CHILD)


def check(view: JobView) -> Iterator[Claim]:
    found = stall(view)
    if found is None or not found.waiting:
        return
    for one in found.elsewhere:
        tries = unsaved(view, one)
        if tries is not None and not one.stopped:
            yield _tries(view, one, tries, waiting_where(found))
        elif patient(view, one) or _child_may(view, one) or _prepares(view, one):
            continue
        elif _in_library(one):
            yield _long_call(view, one, waiting_where(found))
        elif not one.stopped and still(one) and spot(one.stack) in _PLACES and _own(one):
            yield _claim(view, one, waiting_where(found))


def _child_may(view: JobView, one: Member) -> bool:
    """Whether it waits for a child process, and not for long: of what that does elsewhere (a copy made by a
    service, a command on another host) nothing is seen here."""
    return awaits_child(one) and view.now - stood_since(view) < CHILD_MAY


def _prepares(view: JobView, one: Member) -> bool:
    """Whether it computes before its first step, and not for long: it builds a vocabulary, a kernel."""
    begun = one.step > 0 or one.ops > FEW
    return not begun and not _idle(one) and view.now - stood_since(view) < LONG_CALL


def _own(one: Member) -> bool:
    """A member that computes inside a library is at work; one that spins in user code is not. That
    takes more looks: an evaluation in plain Python is at a few lines for a moment, too."""
    assert one.stack is not None
    if _idle(one):
        return True
    own = spot(one.stack) is Spot.USER and one.stack.frames[0].is_user
    return own and one.stack.samples >= BUSY_LOOKS and one.stack.span >= BUSY_SPAN


def _in_library(one: Member) -> bool:
    """A member that computes in one call of a library for longer than most take. Only once it has
    trained: what is prepared before (a tokenizer, a compiled program) may take its time."""
    begun = one.step > 0 or one.ops > FEW
    if one.stack is None or one.stopped or one.os_state == "D" or not begun or one.spent.now:
        return False
    user, frames = one.stack.user, one.stack.frames
    if user is None or frames[0].is_user or spot(one.stack) is not Spot.USER or _idle(one):
        return False
    return one.stack.stays >= LONG_CALL and max(one.io, one.traffic) < IO_MOVING


def _long_call(view: JobView, one: Member, others: Evidence) -> Claim:
    assert one.stack is not None and one.stack.user is not None
    place, inner, stays = one.stack.user, one.stack.frames[0], one.stack.stays
    return Claim(
        summary=f"{one.who.name} computes in one call at {place} for more than {LONG_CALL:.0f} s while "
        "the others wait for it: it takes very long, or never ends",
        who=(one.who,),
        evidence=(
            Evidence(f"in {inner.function} ({inner.file}) for {stays:.0f} s", one.stack.by),
            Evidence(f"CPU busy, {one.cpu * 100:.0f} % of a core; no I/O", "/proc"),
            others,
            Evidence(place.text or "source not readable", f"{place.file}:{place.line}"),
        ),
        fix=f"see what {place.function} passes to it at {place.file}:{place.line}, and set a limit; if it "
        "ends by itself (a fit, a metric), do it after the barrier, or on all ranks; "
        + on_host(view, one, f"py-spy dump --native --pid {one.who.pid}"),
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=stood_since(view),
    )


def _tries(view: JobView, one: Member, tries: Unsaved, others: Evidence) -> Claim:
    kind = tries.error.partition(":")[0]
    return Claim(
        summary=f"{one.who.name} keeps trying to save a checkpoint, which raises {kind}, while the "
        "others wait for it",
        who=(one.who,),
        evidence=(
            Evidence(f"{tries.times} times in a row, the last {tries.error}", tries.place),
            others,
        ),
        fix="see whether the disk that it saves to is full (df -h), gone or read-only; limit the retries at "
        f"{tries.place.partition(' in ')[0]}, and let all ranks go on without it",
        certainty=Certainty.LIKELY,
        since=stood_since(view),
    )


def _idle(one: Member) -> bool:
    """Whether it computes nothing; one that always wants to run gets little CPU where others take it."""
    return one.cpu < IDLE and one.os_state != "R"


def _claim(view: JobView, one: Member, others: Evidence) -> Claim:
    assert one.stack is not None
    place = one.stack.place
    # A long call into native code looks the same from outside as an endless loop.
    working = not _idle(one)
    busy = f"{one.cpu * 100:.0f} % of a core" if one.cpu > 0.05 else "no CPU"
    child = f"waiting for {child_of(one)} " if awaits_child(one) else ""
    look = f"{one.stack.samples} looks over {one.stack.span:.1f} s, {busy}"
    return Claim(
        summary=f"{one.who.name} {'stays' if working else 'is stuck'} at {place} "
        f"{'with its CPU busy ' if working else ''}{child}while the others wait for it",
        who=(one.who,),
        evidence=(
            Evidence(f"the same place in {look}", one.stack.by),
            *commands_of(one),
            *rewritten(one),
            *thread_ended(one),
            others,
            Evidence(place.text or "source not readable", f"{place.file}:{place.line}"),
        ),
        fix=look_at_child(view, one)
        or (_idle(one) and mend_thread(one, place))
        or f"see what {place.function} {'does' if working else 'waits for'} at {place.file}:{place.line}; "
        + on_host(view, one, f"py-spy dump --locals --pid {one.who.pid}"),
        severity=Severity.WARNING if working else Severity.ERROR,
        certainty=Certainty.LIKELY,
        since=stood_since(view),
    )


_SPIN = Frame("/home/u/train.py", 33, "wait_for_flag", "while not flag.is_set():")
_WAIT = Frame("/usr/lib/python3.11/subprocess.py", 1264, "wait")
_CHILD = msgspec.structs.replace(stack(_WAIT, USER), children=((4711, "/usr/bin/unzip data.zip"),))
_RUN = Op("Session.run", 41, 90.0)
_IN_RUN = task("worker", 0, op=_RUN, stack=stack(USER))
_SYNC = {"notes": {"synchronous": "2 of 2"}}
_METRIC = Frame("/home/u/train.py", 33, "compute_metrics", "total += score(a, b)")
_CLOSE = Frame("/v/site-packages/tensorflow/python/client/session.py", 2001, "close")
_FUNCTION = Frame("/v/site-packages/tensorflow/python/eager/execute.py", 53, "quick_execute")
_READS = Frame("/home/u/train.py", 29, "rows", "open(path).read()")
_FED = msgspec.structs.replace(stack(_FUNCTION, USER), fed_by=(_READS,))
_IN_FUNCTION = Op("tf.function epoch", 41, 90.0)
_SYSTEM = Frame("/home/u/train.py", 9, "fetch", "os.system('rsync -a data: .')")
_REGEX = Frame("/usr/lib/python3.11/re/__init__.py", 166, "match")
_MATCHES = msgspec.structs.replace(stack(_REGEX, USER, samples=20, moving=True), stays=62.0)
_FULL = {NOTE: "30 RuntimeError: [enforce fail] . unexpected pos 704 at train.py:77 in save"}
_FIT = msgspec.structs.replace(
    stack(Frame("/v/site-packages/sklearn/svm.py", 9, "fit"), USER, samples=20), stays=40.0
)


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "endless loop": (
            stalled(waiting(0), member(1, stack=stack(_SPIN, USER), cpu=1.0), waiting(2)),
            "worker 1 stays at train.py:33 in wait_for_flag with its CPU busy "
            "while the others wait for it",
        ),
        "a child, of a program whose code is all installed": (
            stalled(
                waiting(0),
                member(1, stack=msgspec.structs.replace(stack(_WAIT), children=((4711, "unzip"),))),
                waiting(2),
                progress_at=30.0,
            ),
            "worker 1 is stuck at subprocess.py:1264 in wait waiting for its child process 4711 (unzip) "
            "while the others wait for it",
        ),
        "an evaluation in plain Python that does not end": (
            stalled(
                waiting(0),
                member(1, stack=stack(_METRIC, USER), cpu=1.0),
                waiting(2),
                progress_at=30.0,
            ),
            "worker 1 stays at train.py:33 in compute_metrics with its CPU busy while the others wait for it",
        ),
        "idle in an evaluation": (
            stalled(waiting(0), member(1, stack=stack(_METRIC, USER)), waiting(2)),
            "worker 1 is stuck at train.py:33 in compute_metrics while the others wait for it",
        ),
        "endless loop in a job whose steps are not seen": (
            stalled(
                waiting(0), member(1, stack=stack(_SPIN, USER), cpu=1.0, step=0, ops=40), waiting(2)
            ),
            "worker 1 stays at train.py:33 in wait_for_flag with its CPU busy while the others wait for it",
        ),
        "endless loop that gets little CPU": (
            stalled(
                waiting(0), member(1, stack=stack(_SPIN, USER), cpu=0.13, os_state="R"), waiting(2)
            ),
            "worker 1 stays at train.py:33 in wait_for_flag with its CPU busy "
            "while the others wait for it",
        ),
        "a call of a library that does not end": (
            stalled(waiting(0), member(1, stack=_MATCHES, cpu=0.9), waiting(2)),
            "worker 1 computes in one call at train.py:41 in train for more than 60 s while the others "
            "wait for it: it takes very long, or never ends",
        ),
        "a checkpoint that fails again and again": (
            stalled(
                waiting(0),
                member(1, stack=stack(USER), notes=_FULL, io=6e6),
                waiting(2),
                progress_at=30.0,
            ),
            "worker 1 keeps trying to save a checkpoint, which raises RuntimeError, while the "
            "others wait for it",
        ),
        "a child process": (
            stalled(waiting(0), member(1, stack=_CHILD), waiting(2), progress_at=30.0),
            "worker 1 is stuck at train.py:41 in train waiting for its child process 4711 (unzip data.zip) "
            "while the others wait for it",
        ),
        "os.system": (
            stalled(waiting(0), member(1, stack=stack(_SYSTEM)), waiting(2), progress_at=30.0),
            "worker 1 is stuck at train.py:9 in fetch waiting for a child process while the others "
            "wait for it",
        ),
        "in the generator that its tf.function takes its batches from": (
            stalled(
                member(0, stack=stack(_FUNCTION, USER), op=_IN_FUNCTION),
                member(1, stack=_FED, op=_IN_FUNCTION),
            ),
            "worker 1 is stuck at train.py:29 in rows while the others wait for it",
        ),
        "a synchronous job with parameter servers": (
            stalled(
                msgspec.structs.replace(_IN_RUN, **_SYNC),
                task("worker", 1, stack=stack(_SPIN, USER), cpu=1.0, **_SYNC),
                task("ps", 0),
            ),
            "worker 1 stays at train.py:33 in wait_for_flag with its CPU busy "
            "while the others wait for it",
        ),
    },
    silent_on={
        "in an evaluation, for some seconds": stalled(
            waiting(0),
            member(1, stack=stack(_SPIN, USER), cpu=1.0, spent=Spent(now="evaluation")),
            waiting(2),
        ),
        "in a function that is called after an evaluation, for less than a minute": stalled(
            waiting(0),
            member(1, stack=stack(_METRIC, USER), cpu=1.0),
            waiting(2),
            progress_at=50.0,
        ),
        "a child at work": stalled(waiting(0), member(1, stack=_CHILD, cpu=0.9), waiting(2)),
        "the generator makes a batch now and then": stalled(
            member(0, stack=stack(_FUNCTION, USER), op=_IN_FUNCTION),
            member(1, stack=_FED, op=_IN_FUNCTION, cpu=0.06),
        ),
        "a child, for less than a minute": stalled(
            waiting(0), member(1, stack=_CHILD), waiting(2), progress_at=50.0
        ),
        "a child that uploads": stalled(
            waiting(0), member(1, stack=_CHILD, traffic=3e5), waiting(2), progress_at=30.0
        ),
        "it downloads by itself": stalled(
            waiting(0), member(1, stack=stack(_SPIN, USER), traffic=4e4), waiting(2)
        ),
        "waiting in the kernel": stalled(
            waiting(0), member(1, stack=stack(_SYSTEM), os_state="D"), waiting(2)
        ),
        "a library at work that gets little CPU": stalled(
            waiting(0),
            member(
                1,
                stack=stack(Frame("/v/site-packages/sklearn/svm.py", 9, "fit"), USER),
                cpu=0.13,
                os_state="R",
            ),
            waiting(2),
        ),
        "it prepares its first step, for less than a minute": stalled(
            waiting(0),
            member(1, stack=stack(_SPIN, USER), cpu=1.0, step=0, ops=3),
            waiting(2),
            progress_at=50.0,
        ),
        "a few looks at a loop": stalled(
            waiting(0), member(1, stack=stack(_SPIN, USER, samples=4), cpu=1.0), waiting(2)
        ),
        "moving stacks": stalled(
            waiting(0), member(1, stack=stack(_SPIN, USER, moving=True), cpu=1.0), waiting(2)
        ),
        "a checkpoint that fails, for less than a minute": stalled(
            waiting(0), member(1, stack=stack(USER), notes=_FULL, io=6e6), waiting(2)
        ),
        "a checkpoint that failed once": stalled(
            waiting(0),
            member(1, stack=stack(USER), notes={NOTE: "1 OSError: no at a.py:7 in f"}, io=6e6),
            waiting(2),
            progress_at=30.0,
        ),
        "a fit, for less than a minute": stalled(
            waiting(0), member(1, stack=_FIT, cpu=1.0), waiting(2)
        ),
        "a long call before its first step": stalled(
            waiting(0), member(1, stack=_MATCHES, cpu=0.9, step=0, ops=2), waiting(2)
        ),
        "a long call that reads": stalled(
            waiting(0), member(1, stack=_MATCHES, cpu=0.9, io=5e6), waiting(2)
        ),
        "a long evaluation": stalled(
            waiting(0),
            member(1, stack=_MATCHES, cpu=0.9, spent=Spent(now="evaluation")),
            waiting(2),
        ),
        "a long call of a library": stalled(
            waiting(0),
            member(1, stack=stack(Frame("/v/site-packages/sklearn/svm.py", 9, "fit"), USER), cpu=1),
            waiting(2),
        ),
        "its server is dead, and it closes its session": stalled(
            _IN_RUN,
            task("worker", 1, stack=stack(_CLOSE, USER)),
            task("ps", 0, exit=Exit(at=88.0, signal=9)),
        ),
        "its server is dead, and it tries again in a loop of its own": stalled(
            _IN_RUN,
            task("worker", 1, stack=stack(USER)),
            task("ps", 0, exit=Exit(at=88.0, signal=9)),
        ),
        "its server is stopped": stalled(
            msgspec.structs.replace(_IN_RUN, **_SYNC),
            task("worker", 1, stack=stack(USER), **_SYNC),
            task("ps", 0, os_state="T"),
        ),
        "asynchronous workers do not wait for it": stalled(
            _IN_RUN, task("worker", 1, stack=stack(USER)), task("ps", 0)
        ),
        "it closes its session, and the server is on another host": stalled(
            waiting(0), member(1, stack=stack(_CLOSE, USER)), waiting(2)
        ),
        "all in the collective": stalled(
            waiting(0), member(1, stack=stack(REDUCE, USER)), waiting(2)
        ),
    },
    since="0.1",
    passes=True,
    drill=(
        "stuck-in-python",
        "polls-for-a-file",
        "tf-stuck-in-python",
        "jax-stuck-in-python",
        "stuck-in-child",
    ),
)
