"""The framework aborted a collective because the workers' calls did not match.

## Why it matters
Collectives are matched only by their order. TensorFlow and gloo compare type, shape or size, and abort: all
workers fail, and the message names none of them. With TORCH_DISTRIBUTED_DEBUG=DETAIL, PyTorch compares two
ranks and names both. No message shows which one is wrong, since the first caller determines what is expected
of the others.

## What to do
Compare the lines where the workers were. Look for a validation, a metric or a checkpoint that only the chief
runs inside the strategy; a different number of batches; a different model or shape; variables created in
another order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from allaboard.analysis.collectives.collective_order import find_call_differences
from allaboard.analysis.failures.failure_causality import failed_at, has_failed, order_failures
from allaboard.analysis.failures.mismatch_errors import barrier_name, find_mismatch_error
from allaboard.analysis.member_names import name_by_rank
from allaboard.analysis.stalls.stall import JITTED_NOTE
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import EADDRINUSE, USER, ended_member, sample_job, waiting_member

SETTLE_S = 2.0
"""Seconds for the other members, which abort too, to show where they were."""

_CALLS_FIX = (
    "let all ranks make the same calls in the same order: look at these lines for what only some ranks do "
    "(if rank == 0, a checkpoint or metric on the chief only), and at shapes and dtypes"
)
MAX_SHOWN_BARRIERS = 3
"""Names of barriers that are told."""
_NAMES_FIX = (
    "make the name equal on all processes at these lines: no rank, no time, and the same step or epoch in "
    "it; one that differs by a step has made more calls, or fewer, than the others"
)
_BARRIER_FIX = (
    "compare wait_at_barrier(barrier_id, timeout_in_ms, process_ids) in all processes: the same barrier with "
    "the same process_ids, given by all of these or by none"
)
_DEVICE_FIX = (
    "nvidia-smi -L   # on each host, in the environment of the job: the rank on the CPU sees no GPU, or its "
    "framework or Horovod is a build without it (horovodrun --check-build)"
)


def check(view: JobView) -> Iterator[Claim]:
    mismatches = [
        (m, mismatch)
        for m in view.members
        if has_failed(m) and (mismatch := find_mismatch_error(m)) is not None
    ]
    if not mismatches or order_failures(view).root_failures or find_call_differences(view):
        return
    first_member, mismatch = min(mismatches, key=lambda pair: failed_at(pair[0]))
    if view.now - failed_at(first_member) < SETTLE_S and not view.ended:
        return
    # All were in the collective; which of them is wrong is unknown.
    participants = [m for m in view.members if m.declared is not None and not m.launcher]
    by_barrier = _members_by_barrier(participants)
    fewest = min(by_barrier.values(), key=len, default=[])
    is_one_rarer = sum(len(members) == len(fewest) for members in by_barrier.values()) == 1
    yield Claim(
        summary="the workers' calls of a collective do not match: "
        + (_describe_barriers(by_barrier) if by_barrier else mismatch),
        who=tuple(m.who for m in (fewest if is_one_rarer and fewest else participants)),
        evidence=tuple(
            Evidence(_describe_position(m), "exceptions" if m.raised else m.log)
            for m in participants[:4]
        ),
        fix=_NAMES_FIX if by_barrier else _fix(mismatch),
        certainty=Certainty.LIKELY,
        since=failed_at(first_member),
    )


def _members_by_barrier(members: Sequence[Member]) -> dict[str, list[Member]]:
    """Return which members came to which barrier of JAX; {} unless each says so, and the names differ."""
    by_name: dict[str, list[Member]] = defaultdict(list)
    for member in members:
        by_name[barrier_name(member)].append(member)
    return dict(by_name) if len(by_name) > 1 and "" not in by_name else {}


def _describe_barriers(by_barrier: dict[str, list[Member]]) -> str:
    parts = [
        f"{name_by_rank(members)} came to sync_global_devices('{name}')"
        for name, members in sorted(by_barrier.items(), key=lambda item: len(item[1]))
    ]
    more = len(parts) - MAX_SHOWN_BARRIERS
    return ", ".join(parts[:MAX_SHOWN_BARRIERS]) + (f", and {more} more" if more > 0 else "")


def _fix(mismatch: str) -> str:
    if "specified device" in mismatch:
        return _DEVICE_FIX
    return _BARRIER_FIX if "one barrier" in mismatch else _CALLS_FIX


def _describe_position(member: Member) -> str:
    """Return the line of the member, and the number of its steps."""
    frame = member.raised.where if member.raised is not None else None
    ended = "exited" if member.exit is not None else "still in it"
    return (
        f"{member.who.name}: {f'at {frame}' if frame else _last_seen(member) or ended}, after "
        f"{member.step} steps"
    )


def _last_seen(member: Member) -> str:
    """Return where a member without a traceback was last seen, or ""."""
    group = max(
        (g for g in member.groups if g.last_call is not None), key=lambda g: g.since, default=None
    )
    if group is not None and group.last_call is not None and group.last_call.site:
        return f"its last call was {group.last_call} at {group.last_call.site}"
    if member.alive and member.stack is not None and member.stack.user is not None:
        return f"still in it at {member.stack.user}"
    step = member.notes.get(JITTED_NOTE, "").rpartition("/")[2]
    return f"it called its step function at {step}" if step else ""


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
_FINGERPRINTS = (
    "RuntimeError",
    "Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint("
    "SequenceNumber=485, OpType=ALLREDUCE, TensorShape=[25], TensorDtypes=Float), but Rank 0 is running "
    "collective: CollectiveFingerPrint(SequenceNumber=485, OpType=BROADCAST, TensorShape=[1]).",
)


def _other_name(name: str) -> tuple[str, str]:
    message = f"sync_global_devices name mismatch ('{name}'). Expected: [446 223 446]; got: 446."
    return "AssertionError", message


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("exit", "raised"),
    fires_on={
        "TensorFlow reports that the dtypes differ": (
            sample_job(
                ended_member(0, raised=_SAYS, frames=(USER,)), ended_member(1, raised=_SAYS)
            ),
            "the workers' calls of a collective do not match: a reduction of int64, and a reduction of "
            "float32",
        ),
        "TensorFlow reports to one worker that the shapes differ; the other only lost its peer": (
            sample_job(
                ended_member(0, raised=_LOST, ended_at=97.0),
                ended_member(1, raised=_SHAPE, ended_at=93.0),
            ),
            "the workers' calls of a collective do not match: a collective of shape [32,128], and one of "
            "shape [32,64]",
        ),
        "gloo aborts the process because the sizes differ": (
            sample_job(ended_member(0, signal=6, last_line=_GLOO), ended_member(1, raised=_LOST)),
            "the workers' calls of a collective do not match: collectives of different sizes: 4 bytes "
            "were expected, 8192 came",
        ),
        "PyTorch compared the calls of two ranks": (
            sample_job(
                ended_member(0, raised=_FINGERPRINTS), ended_member(1, raised=_FINGERPRINTS)
            ),
            "the workers' calls of a collective do not match: rank 1 called ALLREDUCE of [25], and rank 0 "
            "BROADCAST of [1]",
        ),
        "JAX reports that one process came to a barrier of another name": (
            sample_job(
                *(
                    ended_member(r, raised=_other_name("save_4" if r == 1 else "save_3"))
                    for r in range(3)
                )
            ),
            "the workers' calls of a collective do not match: rank 1 came to sync_global_devices('save_4'), "
            "ranks 0 and 2 came to sync_global_devices('save_3')",
        ),
    },
    silent_on={
        "both workers only lost their peer": sample_job(
            ended_member(0, raised=_LOST), ended_member(1, raised=_LOST)
        ),
        "one worker had failed before for another reason": sample_job(
            ended_member(0, raised=_SAYS),
            ended_member(1, ended_at=94.0, raised=("ValueError", "bad sample")),
        ),
        "the first worker failed one second ago, and the others may still show where they were": sample_job(
            ended_member(0, ended_at=99.0, raised=_SAYS), waiting_member(1)
        ),
        "a worker's port was taken, which NET005 reports": sample_job(
            ended_member(0, raised=("DistNetworkError", EADDRINUSE)), ended_member(1, raised=_LOST)
        ),
    },
    retry=Retry.NEVER,
    relations=Relations(explains=("LOG003",)),
    drill=("tf-collectives-differ",),
)
