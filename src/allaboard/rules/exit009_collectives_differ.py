"""The framework gave up a collective, because the workers called different ones.

## Why it matters
Collectives are matched by their order alone. TensorFlow and gloo compare type, shape or size, and abort:
all workers fail, and the message names none of them. It does not show which one is wrong either, since
whoever comes first sets what is expected of the others.

## What to do
Compare the lines at which the workers were. Look for a validation, a metric or a checkpoint that only the
chief makes inside the strategy; a different number of batches; a different model or shape; variables
created in another order.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.collective_order import find_differences
from allaboard.analysis.failures.failure_causality import failed_at, has_failed, order_failures
from allaboard.analysis.failures.mismatch_errors import find_mismatch_error
from allaboard.analysis.stalls.stall import JITTED_NOTE
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Stage
from allaboard.facts.samples import EADDRINUSE, USER, ended, job, waiting

SETTLE = 2.0
"""Seconds in which the others, who abort too, show where they were."""


def check(view: JobView) -> Iterator[Claim]:
    said = [
        (m, words)
        for m in view.members
        if has_failed(m) and (words := find_mismatch_error(m)) is not None
    ]
    if not said or order_failures(view).root_failures or find_differences(view):
        return
    first, words = min(said, key=lambda one: failed_at(one[0]))
    if view.now - failed_at(first) < SETTLE and not view.ended:
        return
    # All were in it: which of them is wrong, nobody has said.
    met = [m for m in view.members if m.declared is not None and not m.launcher]
    yield Claim(
        summary=f"the workers met in a collective with different calls: {words}",
        who=tuple(m.who for m in met),
        evidence=tuple(Evidence(_where(m), "exceptions" if m.raised else m.log) for m in met[:4]),
        fix="let all make the same calls in the same order: look at these lines for what only some ranks do "
        "(if rank == 0, a checkpoint or metric of the chief alone), and at shapes and dtypes",
        certainty=Certainty.LIKELY,
        since=failed_at(first),
    )


def _where(one: Member) -> str:
    """Its own line, and in how many steps."""
    place = one.raised.where if one.raised is not None else None
    ended = "ended" if one.exit is not None else "still in it"
    return (
        f"{one.who.name}: {f'at {place}' if place else _last(one) or ended}, after {one.step} steps"
    )


def _last(one: Member) -> str:
    """Where it was last seen, of one that shows no line itself; "" where that is not known."""
    called = max((g for g in one.groups if g.last is not None), key=lambda g: g.since, default=None)
    if called is not None and called.last is not None and called.last.site:
        return f"its last call was {called.last} at {called.last.site}"
    if one.alive and one.stack is not None and one.stack.user is not None:
        return f"still in it at {one.stack.user}"
    step = one.notes.get(JITTED_NOTE, "").rpartition("/")[2]
    return f"it called its step at {step}" if step else ""


_SAYS = (
    "InternalError",
    "Collective ops is aborted by: Collective instance 285 expected type 0 and data_type 9 but got type 0 "
    "and data_type 1\nThe error could be from a previous operation.",
)
_SHAPE = (
    "InvalidArgumentError",
    "Collective ops is aborted by: Shape mismatch in the collective instance 100. Op at device /job:worker/"
    "replica:0/task:1/device:CPU:0 expected shape [32,128] but another member in the group expected shape "
    "[32,64]. This is likely due to different input shapes at different members of the collective op.",
)
_LOST = ("UnavailableError", "Collective ops is aborted by: The following tasks are unhealthy")
_GLOO = (
    "what():  [enforce fail at external/gloo/gloo/transport/tcp/pair.cc:459] op.preamble.length <= "
    "op.nbytes. 8192 vs 4. Received data size doesn't match expected size."
)
RULE = Rule(
    stage=Stage.EXIT,
    reads=JobView,
    check=check,
    needs=("exit", "raised"),
    fires_on={
        "other dtypes": (
            job(ended(0, raised=_SAYS, frames=(USER,)), ended(1, raised=_SAYS)),
            "the workers met in a collective with different calls: a reduction of int64, and a reduction of "
            "float32",
        ),
        "other shapes, and the other one saw only that this one had gone": (
            job(ended(0, raised=_LOST, at=97.0), ended(1, raised=_SHAPE, at=93.0)),
            "the workers met in a collective with different calls: a collective of shape [32,128], and "
            "one of shape [32,64]",
        ),
        "gloo aborts the process": (
            job(ended(0, signal=6, last_line=_GLOO), ended(1, raised=_LOST)),
            "the workers met in a collective with different calls: collectives of different sizes: 4 bytes "
            "were expected, 8192 came",
        ),
    },
    silent_on={
        "a peer went away": job(ended(0, raised=_LOST), ended(1, raised=_LOST)),
        "one had failed before": job(
            ended(0, raised=_SAYS), ended(1, at=94.0, raised=("ValueError", "bad sample"))
        ),
        "too early to say": job(ended(0, at=99.0, raised=_SAYS), waiting(1)),
        "the port of one was taken": job(
            ended(0, raised=("DistNetworkError", EADDRINUSE)), ended(1, raised=_LOST)
        ),
    },
    since="0.1",
    drill=("tf-collectives-differ", "jax-collectives-differ"),
)
