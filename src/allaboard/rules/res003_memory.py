"""Memory will run out soon if its use keeps growing at the present rate.

allaboard reads every second: the memory of the workers' cgroup against its limit, that of the host, and a
worker's address space if `ulimit -v` limits it; every five seconds that of the GPUs (NVML), and what tensors
hold there after a step, where PyTorch or JAX counts it. Page cache that can be dropped does not count. It is
reported once half is used, and the use rises in a straight line that reaches the limit within five times the
observed time: ten seconds or more, four if the line is nearly perfect, 30 on a GPU. A rise that has stopped
in the last four seconds (a warm-up) is not reported.

## Why it matters
The kernel then kills the largest process (exit by signal 9, no traceback), or an allocation fails in a line
that is not the one that leaks. What was computed since the last checkpoint is lost.

## What to do
Save a checkpoint now. Then look for common causes: losses or outputs kept with their graph (`total += loss`
instead of `loss.item()`), a list that grows with each batch, caches in the dataset, copies in many DataLoader
workers. `tracemalloc` or `memray` names the lines.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.member_names import name_members
from allaboard.analysis.resources.gpu_holders import example_gpu, members_on_gpu
from allaboard.analysis.resources.resource_forecast import (
    example_rising_use,
    find_running_out,
    forecast_claim,
)
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, JobView

FIX = "save a checkpoint; look for tensors or lists that grow from step to step (use loss.item())"
"""Advice for all kinds of memory."""
MIN_GPU_SPAN_S = 30.0
"""Seconds for which the memory of a GPU must have risen: an allocator's cache fills up in the first steps."""


def check(view: JobView) -> Iterator[Claim]:
    tensors = [u for u in find_running_out(view, "device memory") if u[0].span >= MIN_GPU_SPAN_S]
    counted = {m.event_key for _, members in tensors for m in members}
    for use, members in (
        *tensors,
        *find_running_out(
            view, "address space", "memory of the cgroup", "host memory", "gpu memory"
        ),
    ):
        if use.name == "device memory":
            prediction = f"{name_members(members)} will run out of memory for tensors"
        elif use.name.startswith("gpu memory"):
            if use.span < MIN_GPU_SPAN_S:
                continue
            index = use.name.removeprefix("gpu memory ")
            prediction = f"GPU {index} of {use.host} will run out of memory"
            gpu = next((g for g in view.gpus if (g.host, str(g.index)) == (use.host, index)), None)
            members = members_on_gpu(view, gpu) if gpu is not None else ()
            if not members:  # others' GPU
                continue
            if counted.issuperset(m.event_key for m in members):
                continue  # the framework's own count says which of them
        elif use.name == "address space":
            prediction = f"{name_members(members)} will run out of address space (ulimit -v)"
        elif use.name == "host memory":
            prediction = f"host {use.host} will run out of memory"
        else:
            prediction = f"the cgroup of the workers on {use.host} will run out of memory"
        yield forecast_claim(use, tuple(m.who for m in members), prediction, FIX)


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a worker's address space grows towards `ulimit -v`": (
            example_rising_use("address space"),
            "worker 1 will run out of address space (ulimit -v) in about 30 s: 700.0 MB of 1.0 GB, "
            "10.0 MB more a second",
        ),
        "the memory of the host has been growing quickly for four seconds": (
            example_rising_use("host memory", pid=0, rate=4.0, fit=0.4, recent=20.0),
            "host a will run out of memory in about 15 s: 700.0 MB of 1.0 GB, 20.0 MB more a second",
        ),
        "the memory of the workers' cgroup grows towards its limit": (
            example_rising_use("memory of the cgroup", pid=0),
            "the cgroup of the workers on a will run out of memory in about 30 s: 700.0 MB of 1.0 GB, "
            "10.0 MB more a second",
        ),
        "the memory of a GPU has been growing for 40 seconds": (
            msgspec.structs.replace(
                example_rising_use("gpu memory 0", pid=0, span=40.0),
                gpus=(example_gpu(0, pid=101), example_gpu(1, pid=102)),
            ),
            "GPU 0 of a will run out of memory in about 30 s: 700.0 MB of 1.0 GB, 10.0 MB more a second",
        ),
        "the tensors of one rank grow, and with them the memory of its GPU": (
            msgspec.structs.replace(
                example_rising_use("device memory", span=40.0),
                uses=(
                    *example_rising_use("gpu memory 0", pid=0, span=40.0).uses,
                    *example_rising_use("device memory", span=40.0).uses,
                ),
                gpus=(example_gpu(0, pid=101),),
            ),
            "worker 1 will run out of memory for tensors in about 30 s: 700.0 MB of 1.0 GB, 10.0 MB more "
            "a second",
        ),
        "the memory of the host grows steadily": (
            example_rising_use("host memory", pid=0),
            "host a will run out of memory in about 30 s: 700.0 MB of 1.0 GB, 10.0 MB more a second",
        ),
    },
    silent_on={
        "the memory of the cgroup is nearly full, but does not grow": example_rising_use(
            "memory of the cgroup", pid=0, value=990.0, rate=0.0
        ),
        "the memory of the host rises and falls": example_rising_use("host memory", pid=0, fit=0.5),
        "a worker's address space grows: two and a half minutes to the limit": example_rising_use(
            "address space", rate=2.0
        ),
        "the memory of the host grew only during the warm-up": example_rising_use(
            "host memory", pid=0, recent=0.0
        ),
        "the memory of a GPU that only other programs use": msgspec.structs.replace(
            example_rising_use("gpu memory 0", pid=0, span=40.0), gpus=(example_gpu(0, pid=4711),)
        ),
        "tensors have been growing for 20 seconds, as in the first steps": example_rising_use(
            "device memory", span=20.0
        ),
        "tensors that TensorFlow counts without a limit": example_rising_use(
            "device memory", span=40.0, limit=0.0
        ),
        (
            "the memory of a GPU has been growing for 20 seconds, as an allocator's cache does"
        ): example_rising_use("gpu memory 0", pid=0, span=20.0),
        "less than half of the address space is used": example_rising_use(
            "address space", value=400.0
        ),
    },
    passes=True,
    drill=("address-space",),
    relations=Relations(measured=True),
)
