"""A rank's GPU is so full that PyTorch has to give its cache back again and again to get memory.

Every five seconds, after a step, allaboard reads `torch.cuda.memory_stats()` in the worker. An allocation
that the driver refuses makes PyTorch wait for the GPU, give all cached blocks back and ask again
(`num_alloc_retries`). Reported are three or more such retries in the last minute that go on. A few during the
first steps (cuDNN tries its algorithms) or for one long sequence are not. After a retry, only blocks
that tensors partly use remain reserved: if much more is reserved than tensors ever used at a time, the memory
is fragmented.

## Why it matters
Each retry stops this rank's GPU for as long as it takes to free and allocate memory, and all ranks wait for
it. The next larger batch may end the job with `CUDA out of memory`.

## What to do
A smaller batch on each rank, gradient accumulation or activation checkpointing. If memory is fragmented,
`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` before the start; batches of differing sizes (padding to
the longest) cause most of it. `torch.cuda.memory_summary()` shows the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.member_names import name_members
from allaboard.analysis.resources.host_load import is_whole_job_training
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Severity
from allaboard.facts.samples import sample_job, sample_member
from allaboard.facts.usage import DeviceMemory, Trend, Use

MIN_RETRIES = 3.0
"""Retries in the last minute, ..."""
MIN_SPAN_S = 20.0
"""... measured over so many seconds at least."""
MIN_UNUSABLE_SHARE = 0.2
"""Share of the reserved memory that tensors never held at a time from which memory counts as fragmented."""


def check(view: JobView) -> Iterator[Claim]:
    uses = {
        (use.host, use.pid): use
        for use in view.uses
        if use.name == "allocation retries" and _goes_on(use)
    }
    if not uses or not is_whole_job_training(view):
        return
    for member in view.alive:
        use, memory = uses.get((member.who.host, member.who.pid)), member.memory
        if use is not None and memory is not None:
            yield _claim(member, use, memory)


def _goes_on(use: Use) -> bool:
    return use.span >= MIN_SPAN_S and use.rate * use.span >= MIN_RETRIES and use.recent.rate > 0.0


def _claim(member: Member, use: Use, memory: DeviceMemory) -> Claim:
    is_fragmented = memory.unusable_nbytes >= MIN_UNUSABLE_SHARE * memory.reserved_nbytes > 0
    why = "fragmented memory" if is_fragmented else "memory that is full"
    advice = (
        "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True   # before the start; else a smaller batch"
        if is_fragmented
        else "use a smaller batch on each rank, gradient accumulation or activation checkpointing"
    )
    return Claim(
        summary=f"{name_members((member,))} had to ask its GPU for memory again about "
        f"{use.rate * use.span:.0f} times in {use.span:.0f} s: {why}",
        who=(member.who,),
        evidence=(
            Evidence(
                f"{use.value:.0f} retries so far; on device {memory.device} tensors hold "
                f"{memory.used_nbytes / 1e9:.1f} GB after a step and {memory.peak_nbytes / 1e9:.1f} GB at "
                f"most; {memory.reserved_nbytes / 1e9:.1f} of {memory.limit_nbytes / 1e9:.1f} GB are "
                "reserved",
                use.origin,
            ),
        ),
        fix=advice,
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _example(peak_gb: float = 76.0, **changes: float) -> JobView:
    fields = {"rate": 0.1, "recent": 0.1, "span": 60.0, "value": 9.0} | changes
    memory = DeviceMemory(
        used_nbytes=40_000_000_000,
        reserved_nbytes=78_000_000_000,
        peak_nbytes=int(peak_gb * 1e9),
        limit_nbytes=80_000_000_000,
        retries=int(fields["value"]),
        source="torch.cuda.memory_stats",
    )
    use = Use(
        host="a",
        pid=101,
        name="allocation retries",
        value=fields["value"],
        limit=0.0,
        rate=fields["rate"],
        fit=0.8,
        span=fields["span"],
        origin=memory.source,
        recent=Trend(fields["recent"], 0.8, 15.0),
    )
    return sample_job(sample_member(0), sample_member(1, memory=memory), uses=(use,))


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("memory",),
    fires_on={
        "six retries in a minute, and tensors fill nearly all reserved memory": (
            _example(),
            "worker 1 had to ask its GPU for memory again about 6 times in 60 s: memory that is full",
        ),
        "six retries in a minute, and tensors never filled a third of the reserved memory": (
            _example(peak_gb=52.0),
            "worker 1 had to ask its GPU for memory again about 6 times in 60 s: fragmented memory",
        ),
    },
    silent_on={
        "a few retries in the first steps, and none since": _example(recent=0.0),
        "a single retry, as for one long sequence": _example(rate=0.02, value=1.0),
        "retries that were measured for only 15 seconds": _example(span=15.0, rate=0.3),
        "much memory is cached, but no retry was needed": _example(
            peak_gb=30.0, rate=0.0, recent=0.0, value=0.0
        ),
        "the job is being ended": msgspec.structs.replace(_example(), ending=True),
    },
    passes=True,
    unstaged="needs a GPU; made from the documents and the source of PyTorch's allocator",
    relations=Relations(measured=True),
)
