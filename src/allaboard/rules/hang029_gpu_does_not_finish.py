"""A worker has waited for a result of its own GPU for more than a minute, while the others wait for it.

## Why it matters
A kernel that does not end, or a copy that does not arrive, holds everything behind it on the GPU's queue. The
program stands at the next line that needs a result (`loss.item()`, `torch.cuda.synchronize()`) and polls with
all of a core, so it looks busy. Its peers block in their next collective, and NCCL's timeout names them.

## What to do
The line that is named is where the program waits, not what the GPU is at. Run once with
`CUDA_LAUNCH_BLOCKING=1`: then the program stands at the line that started the kernel. `cuda-gdb -p PID` and
`info cuda kernels` name the kernel without another run. If the GPU is at work on something that takes long (a
whole evaluation on one rank), do it on all ranks, or give the others a longer timeout.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.member_names import command_on_host
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.analysis.stalls.stuck_members import MAX_GPU_WAIT_S, StuckReason, find_stuck_members
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Member, Severity, Stack
from allaboard.facts.samples import USER, sample_member, sample_stack, stalled_job, waiting_member


def check(view: JobView) -> Iterator[Claim]:
    for stuck in find_stuck_members(view):
        if stuck.reason is StuckReason.GPU:
            yield _claim(view, stuck.member, stuck.waiting)


def _claim(view: JobView, member: Member, peers_evidence: Evidence) -> Claim:
    assert member.stack is not None
    frame = member.stack.main_frame
    on_host = command_on_host(view, member, f"cuda-gdb -p {member.who.pid}")
    return Claim(
        summary=f"{member.who.name} has waited for its own GPU at {frame} for more than "
        f"{MAX_GPU_WAIT_S:.0f} s while the others wait for it",
        who=(member.who,),
        evidence=(
            Evidence(f"at the same line for {member.stack.stays:.0f} s", member.stack.by),
            Evidence(f"{member.cpu * 100:.0f} % of a core: it polls for the GPU", "/proc"),
            peers_evidence,
            Evidence(frame.text or "source not readable", f"{frame.file}:{frame.line}"),
        ),
        fix="run once with CUDA_LAUNCH_BLOCKING=1, which shows the line that started the kernel; or "
        f"{on_host}   # then: info cuda kernels",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


_ITEM = Frame("/home/u/train.py", 33, "train", "running_loss += loss.item()")
_SYNCHRONIZE = Frame("/v/site-packages/torch/cuda/__init__.py", 1083, "synchronize")


def _polls(*frames: Frame, seconds: float) -> Stack:
    return msgspec.structs.replace(sample_stack(*frames, samples=200), stays=seconds)


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "a loss that the GPU has not computed for more than a minute": (
            stalled_job(
                waiting_member(0), sample_member(1, stack=_polls(_ITEM, seconds=64.0), cpu=1.0)
            ),
            "worker 1 has waited for its own GPU at train.py:33 in train for more than 60 s while the "
            "others wait for it",
        ),
        "`torch.cuda.synchronize()` has not returned for more than a minute": (
            stalled_job(
                waiting_member(0),
                sample_member(1, stack=_polls(_SYNCHRONIZE, USER, seconds=64.0), cpu=1.0),
            ),
            "worker 1 has waited for its own GPU at train.py:41 in train for more than 60 s while the "
            "others wait for it",
        ),
    },
    silent_on={
        "the GPU has computed for 20 s, as it may in an evaluation on one rank": stalled_job(
            waiting_member(0), sample_member(1, stack=_polls(_ITEM, seconds=20.0), cpu=1.0)
        ),
        "a worker in an endless loop of its own, without the GPU": stalled_job(
            waiting_member(0),
            sample_member(
                1,
                stack=_polls(
                    Frame("/home/u/train.py", 33, "spin", "while not flag:"), seconds=64.0
                ),
                cpu=1.0,
            ),
        ),
        "nobody waits for the worker": stalled_job(
            sample_member(0, stack=_polls(_ITEM, seconds=64.0), cpu=1.0)
        ),
    },
    passes=True,
    unstaged="needs a GPU; scripts/gpu-check stages a kernel that does not end",
)
