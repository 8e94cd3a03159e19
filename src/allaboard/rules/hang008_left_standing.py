"""Workers stand idle, and nobody waits for them in a collective.

## Why it matters
The others have ended, or everybody stands at a place of their own: the job will never end by itself.
Possible causes are native code that sleeps while it holds the interpreter lock (PyTorch's process group
does so now and then while it is destroyed), a deadlock between two threads, or a server that is joined and
never returns.

## What to do
Look at the place. `py-spy dump --native --pid PID` shows the native frames below it. If the training is
done and its results are written, you can end the process by hand.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.member_names import agrees, names, on_host
from allaboard.analysis.roll_call.roll_call import in_rpc
from allaboard.analysis.stacks.stack_classifier import Spot, spot
from allaboard.analysis.stalls.checkpoint_pauses import is_in_short_pause
from allaboard.analysis.stalls.dead_threads import (
    THREAD_RAISED_NOTE,
    dead_thread_advice,
    dead_thread_clause,
    dead_thread_evidence,
    ended_thread,
)
from allaboard.analysis.stalls.lock_kind import describe_wait
from allaboard.analysis.stalls.stall import find_stall, is_still
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import (
    Certainty,
    Claim,
    Evidence,
    Frame,
    JobView,
    Member,
    Phase,
    Raised,
    Severity,
    Stage,
)
from allaboard.facts.samples import USER, declared, ended, held, job, member, stack, task, waiting

PATIENCE = 30.0
"""Seconds: an upload after the training, which shows no CPU and no I/O either, takes some."""
CHILD_MAY = 300.0
"""... and one that a child process makes more: of what that waits for elsewhere nothing is seen here."""
RESTS = 0.02
"""Cores: on a host that is full, a process that is slow to leave gets no more than a few hundredths."""


def check(view: JobView) -> Iterator[Claim]:
    found = find_stall(view)
    if found is None or found.waiting or view.now - stalled_since(view) < PATIENCE:
        return
    if in_rpc(view) or any(_may(view, one) for one in found.absent):
        return
    if found.absent and all(_rests(one) for one in found.absent):
        yield _claim(view, found.absent)


def _may(view: JobView, one: Member) -> bool:
    """Whether it may stand there yet, or it is known why: an exception is told by itself."""
    long = view.now - stalled_since(view)
    child = spot(one.stack) is Spot.CHILD and long < CHILD_MAY
    return one.raised is not None or child or is_in_short_pause(view, one)


def _rests(one: Member) -> bool:
    idle = is_still(one) and one.cpu < RESTS and one.os_state == "S"
    return idle and spot(one.stack) not in (Spot.DATA, Spot.FILE_LOCK, Spot.INPUT)


def _claim(view: JobView, standing: tuple[Member, ...]) -> Claim:
    # Who shuts down waits for the others, where there are any whose code is not through.
    down = tuple(m for m in standing if spot(m.stack) is Spot.LEAVING)
    if len(down) < len(standing):
        standing = tuple(m for m in standing if m not in down)
    else:
        down = ()
    places = [(m, m.stack.place) for m in standing if m.stack is not None]
    subject = names(m for m, _ in places)
    verb = "stand" if len(places) > 1 else "stands"
    it = "them" if len(places) > 1 else "it"
    alone = f"while {_names(down)} shut{'' if len(down) > 1 else 's'} down"
    # One whose thread has ended is where to begin.
    places.sort(key=lambda one: ended_thread(one[0]) is None)
    first, place = places[0]
    done = [m for m in view.members if m.exit is not None and not m.launcher]
    after = (
        f", after {len(done)} other{'s have' if len(done) > 1 else ' has'} ended" if done else ""
    )
    return Claim(
        summary=f"{subject} {verb} still at {place}{_child(first)} "
        + (alone if down else _wanted(view) or f"and nobody waits for {it}")
        + after
        + dead_thread_clause(first),
        who=tuple(m.who for m in standing),
        evidence=tuple(
            Evidence(
                f"{m.who.name}: idle for {view.now - stalled_since(view):.0f} s, "
                f"{describe_wait(m.stack)}: {at.text or at}",
                f"{at.file}:{at.line}",
            )
            for m, at in places[:3]
        )
        + tuple(e for m, _ in places[:3] for e in dead_thread_evidence(m)),
        fix=dead_thread_advice(first, place)
        or _service(first, place)
        or on_host(view, first, f"py-spy dump --native --pid {first.who.pid}"),
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


def _service(one: Member, place: Frame) -> str:
    """What to do where it waits for a service that is no part of the job; else ""."""
    if spot(one.stack) is not Spot.DATA_SERVICE:
        return ""
    return (
        "see that a DispatchServer of the tf.data service listens at the address that "
        f"{place.file}:{place.line} is given: it asks there forever"
    )


def _wanted(view: JobView) -> str:
    """Who waits after all, though in no collective: at the next init, in a job that joins again."""
    at_init = [m for m in view.alive if m.phase in (Phase.ARRIVED, Phase.JOINING)]
    return f"while {names(at_init)} {agrees('wait', at_init)} in init" if at_init else ""


def _names(members: tuple[Member, ...]) -> str:
    return ", ".join(m.who.name for m in members)


def _child(one: Member) -> str:
    """The child process that it waits for, where that is so."""
    if one.stack is None or not one.stack.children:
        return ""
    pid, command = one.stack.children[0]
    return (
        f", waiting for its child process {pid} ({command.partition(' ')[0].rpartition('/')[2]}),"
    )


_DOWN = Frame("/v/lib/python3.11/site-packages/jax/_src/distributed.py", 199, "shutdown")
_WAIT = Frame("/usr/lib/python3.11/subprocess.py", 1264, "wait")
_UPLOADS = msgspec.structs.replace(stack(_WAIT, USER), children=((4711, "/usr/bin/rsync -a out"),))
_LOCK = Frame("/usr/lib/python3.11/threading.py", 327, "wait")
_QUEUE = Frame("/usr/lib/python3.11/queue.py", 171, "get")
_RAISED = {THREAD_RAISED_NOTE: "RuntimeError: no at /home/u/train.py:12 in run"}
_END = Frame("/home/u/train.py", 24, "main", "train(moments)")
_LONG = {"progress_at": 60.0}
_TF = "/v/lib/python3.11/site-packages/tensorflow/python/"
_ASKS = stack(
    Frame(_TF + "eager/execute.py", 53, "quick_execute"),
    Frame(_TF + "data/experimental/ops/data_service_ops.py", 885, "_register_dataset"),
    USER,
)
RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "the last one never ends": (
            job(ended(0, code=0), member(1, stack=stack(_END)), **_LONG),
            "worker 1 stands still at train.py:24 in main and nobody waits for it, "
            "after 1 other has ended",
        ),
        "the others are back in init": (
            job(held(0), member(1, stack=stack(_END)), held(2), **_LONG),
            "worker 1 stands still at train.py:24 in main while worker 0, worker 2 wait in init",
        ),
        "its thread has ended, and all wait for theirs": (
            job(
                member(0, stack=stack(_LOCK, _QUEUE, USER)),
                member(1, stack=stack(_LOCK, _QUEUE, USER), notes=_RAISED),
                **_LONG,
            ),
            "worker 0, worker 1 stand still at train.py:41 in train and nobody waits for them, after a "
            "thread of worker 1 raised RuntimeError: no at train.py:12 in run",
        ),
        "one never ends, and the other one waits for it in its framework's shutdown": (
            job(member(0, stack=stack(_DOWN)), member(1, stack=stack(_END)), **_LONG),
            "worker 1 stands still at train.py:24 in main while worker 0 shuts down",
        ),
        "all ask a tf.data service that is not there": (
            job(*(member(r, stack=_ASKS) for r in range(2)), **_LONG),
            "worker 0, worker 1 stand still at train.py:41 in train and nobody waits for them",
        ),
        "a child process that never ends": (
            job(ended(0, code=0), member(1, stack=_UPLOADS), progress_at=90.0, now=400.0),
            "worker 1 stands still at train.py:41 in train, waiting for its child process 4711 "
            "(rsync), and nobody waits for it, after 1 other has ended",
        ),
    },
    silent_on={
        "in RPC, where who stands may well answer others": job(
            *(member(r, declared=declared(r, call="init_rpc"), stack=stack(_END)) for r in (0, 1)),
            **_LONG,
        ),
        "a host of a parameter server, which serves": job(
            task("ps", 0, stack=stack(USER)), now=200.0, progress_at=100.0
        ),
        "a child process uploads for a minute": job(
            member(0, stack=stack(_DOWN)), member(1, stack=_UPLOADS), progress_at=40.0
        ),
        "one has failed, which is told, and shuts down": job(
            member(0, stack=stack(_DOWN), raised=Raised(type="KeyError", message="11", at=58.0)),
            member(1, stack=stack(_END)),
            **_LONG,
        ),
        "not for long": job(ended(0, code=0), member(1, stack=stack(_END)), progress_at=80.0),
        "it computes": job(ended(0, code=0), member(1, stack=stack(_END), cpu=0.9), **_LONG),
        "it leaves, on a host that is full": job(
            ended(0, code=0), member(1, stack=stack(_END), cpu=0.05), **_LONG
        ),
        "it writes": job(ended(0, code=0), member(1, stack=stack(_END), io=1e7), **_LONG),
        "others wait for it": job(waiting(0), member(1, stack=stack(_END, USER)), **_LONG),
    },
    since="0.1",
    passes=True,
    drill=("never-ends",),
)
