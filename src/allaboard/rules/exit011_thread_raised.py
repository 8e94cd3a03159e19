"""A thread that trained raised, and its worker still ended with exit code 0.

## Why it matters
An exception in a thread ends that thread alone: Python prints it and goes on. If the main thread only waits
until the thread is no longer alive, the worker then ends with exit code 0. The launcher, the batch system and
whoever reads the exit code take the job for done, while the training stopped half-way. The others lose their
peer, perhaps in a thread too, and end just as well.

It is a warning if the thread did the training's steps, or called the framework's operations between ranks. A
thread that did neither (an uploader, a progress bar), and one after which the training went on, is only a
note. What was called off (`CancelledError`) is none: closing a session ends its queue runners that way.

## What to do
Fix the line that raised. Let the main thread learn of it: keep the exception and raise it after `join()`, or
run the training by `concurrent.futures` and ask for `future.result()`, which raises it there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from allaboard.analysis.failures.failure_causality import SAME_CAUSE_WINDOW_S, order_failures
from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.analysis.member_names import names, ranked
from allaboard.analysis.stalls.dead_threads import (
    THREAD_CALLED_NOTE,
    THREAD_ENDED_NOTE,
    THREAD_RAISED_NOTE,
    EndedThread,
    ended_thread,
)
from allaboard.contracts import Rule
from allaboard.facts import (
    Claim,
    Evidence,
    JobView,
    Member,
    Raised,
    Severity,
    Stage,
)
from allaboard.facts.samples import ended, job, member, waiting

CALLED_OFF = "CancelledError"
"""What asyncio, concurrent.futures and TensorFlow raise in what was called off: by the program, or by a
failure that is told itself."""
Fell = tuple[Member, EndedThread]


def check(view: JobView) -> Iterator[Claim]:
    fell = [(m, t) for m in view.members if (t := ended_thread(m)) is not None]
    known = [(m, t) for m, t in fell if t.error[0].rpartition(".")[2] != CALLED_OFF]
    lost = [(m, t) for m, t in known if _lost_peer(m, t)]
    same: dict[tuple[str, str, str], list[Fell]] = defaultdict(list)
    for one, thread in known:
        if _ended_well(view, one) and thread.took_part_in != "end" and (one, thread) not in lost:
            same[(thread.error[0], thread.raised_at, thread.took_part_in)].append((one, thread))
    for found in same.values():
        yield _claim(found, lost)
    if same or order_failures(view).root_failures:
        return  # that is why they lost their peer
    parted = [
        (m, t)
        for m, t in lost
        if _ended_well(view, m) and t.took_part_in == "steps" and _mattered(m, t)
    ]
    if parted:
        yield _claim(parted, [])


def _ended_well(view: JobView, one: Member) -> bool:
    """Whether nothing else tells of it; a moment after its end, in which the others fall."""
    end = one.exit
    if end is None or end.code != 0 or end.ours or one.launcher:
        return False
    return view.ended or view.now - end.at >= SAME_CAUSE_WINDOW_S


def _lost_peer(one: Member, thread: EndedThread) -> bool:
    """Whether what the thread raised speaks of a peer. One that only called others may be cut off by the end
    of a training that went well."""
    kind, said = thread.error
    told = Raised(type=kind, message=said, at=0.0)
    return thread.took_part_in in ("steps", "calls") and has_lost_peer(
        msgspec.structs.replace(one, raised=told)
    )


def _mattered(one: Member, thread: EndedThread) -> bool:
    """Whether it had a part in the training, which did not go on after it."""
    return thread.took_part_in in ("steps", "calls") and one.step <= thread.step


def _claim(found: list[Fell], lost: list[Fell]) -> Claim:
    members = [m for m, _ in found]
    first, thread = found[0]
    kind, said = thread.error
    mattered = _mattered(first, thread)
    evidence = [Evidence(f"{kind}: {said}" if said else kind, thread.raised_at or "its excepthook")]
    if first.step:
        later = "" if mattered or thread.took_part_in == "nothing" else ", after that"
        evidence.append(Evidence(f"its last step was {first.step}{later}", "black box"))
    if mattered and lost:
        evidence.append(
            Evidence(
                f"{ranked([m for m, _ in lost])} lost a peer because of it, in a thread too",
                "the notes of their threads",
            )
        )
    file, _, rest = thread.raised_at.partition(":")
    at = f" at {file.rpartition('/')[2]}:{rest}" if thread.raised_at else ""
    called = f"thread {thread.name}" if thread.name else "a thread"
    return Claim(
        summary=f"{called} of {names(members)} raised {kind}{at}; {names(members)} still ended with exit "
        "code 0",
        who=tuple(m.who for m in members),
        evidence=tuple(evidence),
        fix=_fix(first, thread)
        if mattered
        else f"the worker went on; what it printed is in {first.log}",
        severity=Severity.WARNING if mattered else Severity.INFO,
        since=first.exit.at if first.exit is not None else None,
    )


def _fix(first: Member, thread: EndedThread) -> str:
    line = thread.raised_at.partition(" in ")[0]
    mend = f"fix {line}" if line else f"see in {first.log} what it raised"
    return (
        f"{mend}; and let the worker fail with its thread: keep what it raises and raise it after join(), or "
        "use concurrent.futures and call future.result()"
    )


_SAID = "KeyError: 'label_17' at /home/u/train.py:18 in trainer"
_PEER = (
    "RuntimeError: Connection closed by peer [127.0.0.1]:47333 at /home/u/train.py:21 in trainer"
)

_QUEUE = (
    "CancelledError: Step was cancelled by an explicit call to `Session::Close()`. at "
    "/usr/lib/python3.11/threading.py:1045 in _bootstrap_inner"
)


def _notes(said: str = _SAID, did: str = "steps", step: int = 40) -> dict[str, object]:
    return {
        "notes": {
            THREAD_RAISED_NOTE: said,
            THREAD_CALLED_NOTE: "",
            THREAD_ENDED_NOTE: f"{step} {did} trainer",
        }
    }


RULE = Rule(
    stage=Stage.EXIT,
    reads=JobView,
    check=check,
    needs=("exit",),
    fires_on={
        "the trainer": (
            job(
                ended(0, code=0, member=_notes(_PEER)),
                ended(1, code=0, member=_notes()),
                ended=True,
            ),
            "thread trainer of worker 1 raised KeyError at train.py:18 in trainer; worker 1 still ended "
            "with exit code 0",
        ),
        "a thread beside the training": (
            job(ended(0, code=0), ended(1, code=0, member=_notes(did="nothing"))),
            "thread trainer of worker 1 raised KeyError at train.py:18 in trainer; worker 1 still ended "
            "with exit code 0",
        ),
        "a peer was lost, and nobody failed": (
            job(ended(0, code=0, member=_notes(_PEER)), ended(1, code=0)),
            "thread trainer of worker 0 raised RuntimeError at train.py:21 in trainer; worker 0 still ended "
            "with exit code 0",
        ),
    },
    silent_on={
        "a moment ago": job(waiting(0), ended(1, at=99.5, code=0, member=_notes())),
        "it trains on": job(waiting(0), member(1, **_notes())),
        "its worker failed": job(waiting(0), ended(1, code=1, member=_notes())),
        "somebody was killed": job(
            ended(0, code=0, member=_notes(_PEER)), ended(1, at=91.9, signal=9)
        ),
        "the end of the training cut off one that only sent": job(
            ended(0, code=0, member=_notes(_PEER, did="calls")), ended(1, code=0)
        ),
        "a queue runner, as its session was closed": job(
            ended(0, code=0, member=_notes(_QUEUE, did="nothing")), ended(1, code=0)
        ),
        "the interpreter's end": job(
            ended(
                1,
                code=0,
                member=_notes(did="end"),
            )
        ),
    },
    since="0.1",
    drill=("trainer-raises",),
)
