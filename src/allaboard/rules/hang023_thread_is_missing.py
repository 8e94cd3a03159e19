"""All members wait for a message or collective of a thread that has ended with an exception.

## Why it matters
An exception ends only its own thread. The program continues as if nothing had happened, and ranks that wait
for a message or a collective of that thread wait forever.

## What to do
Fix the exception that ended the thread: its traceback is in the log of its rank. To notice it next time, let
the main thread ask for the result (`future.result()`, `thread.join()` and a flag), or end the process from
`threading.excepthook`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import name_by_rank, name_first_members
from allaboard.analysis.stalls.dead_threads import (
    THREAD_CALLED_NOTE,
    THREAD_RAISED_NOTE,
    dead_thread_evidence,
    ended_thread,
    owes_message,
)
from allaboard.analysis.stalls.mutual_wait import (
    MAX_NAMED_RANKS,
    MutualWait,
    describe_position,
    find_mutual_wait,
    name_waiting_ranks,
)
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Op
from allaboard.facts.samples import stalled_job, waiting_member


def check(view: JobView) -> Iterator[Claim]:
    mutual_wait = find_mutual_wait(view)
    if mutual_wait is not None and mutual_wait.lost_thread:
        yield _claim(view, mutual_wait)


def _claim(view: JobView, mutual_wait: MutualWait) -> Claim:
    first_member = mutual_wait.lost_thread[0]
    thread = ended_thread(first_member)
    assert thread is not None
    location = f" at {thread.raised_at}" if thread.raised_at else ""
    owed = "messages" if owes_message(first_member, mutual_wait.waiting) else "collectives"
    return Claim(
        summary=f"a thread of {name_first_members(mutual_wait.lost_thread)} ended with "
        f"{thread.raised}{location}; {name_waiting_ranks(view, mutual_wait.waiting)} wait for each other",
        who=tuple(m.who for m in mutual_wait.lost_thread),
        evidence=tuple(
            e for m in mutual_wait.lost_thread[:MAX_NAMED_RANKS] for e in dead_thread_evidence(m)
        )
        + tuple(
            Evidence(f"{name_by_rank([m])}: {describe_position(m)}", "stacks")
            for m in mutual_wait.waiting[:MAX_NAMED_RANKS]
        ),
        fix=f"fix {thread.raised_at.partition(' in ')[0] or 'what ended it'}: the others wait for "
        f"that thread's {owed}, which will never arrive; its traceback is in {first_member.log}",
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


def _sender_view(last_call: str, main_call: str = "barrier") -> JobView:
    """Return a view in which rank 0 waits for a message of rank 1, and ``called`` is the last call of rank
    1's ended thread."""
    notes = {
        THREAD_RAISED_NOTE: "RuntimeError: away at /home/u/train.py:12 in report",
        THREAD_CALLED_NOTE: last_call,
    }
    return stalled_job(
        waiting_member(0, op=Op("recv from rank 1, tag 7", 41, 90.0)),
        waiting_member(1, op=Op(main_call, 41, 90.0), notes=notes),
    )


_RAISED = {THREAD_RAISED_NOTE: "RuntimeError: away at /home/u/train.py:12 in report"}
RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "a thread of rank 0 waits in a collective for a thread of rank 1 that has ended": (
            stalled_job(
                waiting_member(0, op=Op("all_reduce", 41, 90.0, beside=True)),
                waiting_member(1, notes=_RAISED),
            ),
            "a thread of worker 1 ended with RuntimeError: away at /home/u/train.py:12 in report; all 2 "
            "members wait for each other",
        ),
        "a rank waits for a message from a thread of another rank that has ended": (
            _sender_view("send to rank 0, tag 7"),
            "a thread of worker 1 ended with RuntimeError: away at /home/u/train.py:12 in report; all 2 "
            "members wait for each other",
        ),
    },
    silent_on={
        "the last message of the ended thread had another tag": _sender_view(
            "send to rank 0, tag 8"
        ),
        "the last message of the ended thread went to another rank": _sender_view(
            "send to rank 2, tag 7"
        ),
        "the ended thread has sent no message": _sender_view(""),
        "the main thread of the rank whose thread has ended is itself at a message": _sender_view(
            "send to rank 0, tag 7", "send to rank 0, tag 8"
        ),
        "a thread has ended, but the other rank waits in its main thread": stalled_job(
            waiting_member(0), waiting_member(1, notes=_RAISED)
        ),
    },
    passes=True,
    drill=("sender-raises",),
)
