"""A worker waits for its next batch while the others wait for it.

## Why it matters
There is no error if a DataLoader worker has died, hangs on a lock that it inherited by fork, or reads from
a mount that does not answer. The training process waits in `next()`, and its peers wait in the collective.

## What to do
Look at the loader's own processes: `py-spy dump --pid PID` for each pid that is given. Run once with
`num_workers=0` to see the real exception. `timeout=` on the DataLoader bounds the wait.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.contracts import Rule
from allaboard.evidence.feeding import goes_on
from allaboard.evidence.naming import on_host
from allaboard.evidence.spot import Spot, spot
from allaboard.evidence.stall import IDLE, stall, still, waiting_where
from allaboard.evidence.standing import stood_since
from allaboard.evidence.thread_ended import mend_thread, thread_ended
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Member, Stage
from allaboard.facts.samples import USER, member, stack, stalled, waiting


def check(view: JobView) -> Iterator[Claim]:
    found = stall(view)
    if found is None or not found.waiting:
        return
    for one in found.elsewhere:
        # CPU counts the loader's processes too: while they work, the batch is only slow.
        if one.stopped or not still(one) or one.cpu >= IDLE or goes_on(view, one):
            continue
        if spot(one.stack) is Spot.DATA:
            yield _claim(view, one, waiting_where(found))


def _claim(view: JobView, one: Member, others: Evidence) -> Claim:
    assert one.stack is not None
    place = one.stack.user
    at = f" at {place}" if place is not None else ""
    leaf = one.stack.frames[0]
    return Claim(
        summary=f"{one.who.name} waits for data{at}; the others wait for it",
        who=(one.who,),
        evidence=(
            Evidence(f"in {leaf} for {view.now - stood_since(view):.0f} s, no CPU", one.stack.by),
            *thread_ended(one),
            others,
        ),
        fix=mend_thread(one, place or leaf)
        or on_host(view, one, f"pgrep -P {one.who.pid} | xargs -n1 py-spy dump --pid")
        + "   # its loader processes",
        certainty=Certainty.LIKELY,
        since=stood_since(view),
    )


_NEXT = Frame("/v/lib/python3.11/site-packages/torch/utils/data/dataloader.py", 1280, "_get_data")
_OPTIONAL = Frame(
    "/v/site-packages/tensorflow/python/data/ops/iterator_ops.py", 600, "get_next_as_optional"
)
_SLEEPS = Frame("/home/u/train.py", 29, "rows", "time.sleep(.012)")
_POLL = Frame("/usr/lib/python3.11/multiprocessing/connection.py", 931, "wait")
RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "loader does not answer": (
            stalled(waiting(0), member(1, stack=stack(_POLL, _NEXT, USER)), waiting(2)),
            "worker 1 waits for data at train.py:41 in train; the others wait for it",
        ),
        "a file of a tf.data pipeline does not answer": (
            stalled(waiting(0), member(1, stack=stack(_OPTIONAL, USER))),
            "worker 1 waits for data at train.py:41 in train; the others wait for it",
        ),
    },
    silent_on={
        "loader at work": stalled(
            waiting(0), member(1, stack=stack(_POLL, _NEXT, USER), cpu=0.9), waiting(2)
        ),
        "a generator fills a buffer, and sleeps between its batches": stalled(
            waiting(0),
            member(
                1,
                cpu=0.06,
                stack=msgspec.structs.replace(stack(_OPTIONAL, USER), fed_by=(_SLEEPS,)),
            ),
        ),
        "all wait for data": stalled(
            *(member(r, stack=stack(_POLL, _NEXT, USER)) for r in range(3))
        ),
    },
    since="0.1",
    passes=True,
    drill=("stuck-in-data-loader",),
)
