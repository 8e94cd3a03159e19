"""A GPU lowers its clock while the job trains, because it is too hot or lacks power.

Every few seconds allaboard asks the driver (NVML) for the reasons of the present clock. Heat, a slowdown by
the hardware and the power brake count; the ordinary power cap of a busy GPU and clocks that somebody has set
do not. Reported is a GPU that was slowed down in half of the last 20 seconds or more and runs below nine
tenths of its highest clock.

## Why it matters
All ranks wait in every step for the one whose GPU is slow, and that rank looks like a straggler in its own
code.

## What to do
`nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER` on that host shows the reasons, the limits and the sensors.
Too hot: fans, dust, a neighbour that heats, the inlet of the rack. Power brake: the supply of the host. Both
are cases for whoever runs the machines; until then run without that host.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.resources.gpu_holders import example_gpu, members_on_gpu
from allaboard.analysis.resources.host_load import host_load_claim, is_whole_job_training
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, Gpu, JobView, Trend, Use
from allaboard.facts.samples import sample_job, sample_member

MIN_SLOWED_SHARE = 0.5
"""Share of the time in which it must be slowed down, ..."""
MIN_SPAN_S = 20.0
"""... measured over so many seconds."""
MAX_CLOCK_SHARE = 0.9
"""Share of the highest clock at which a GPU counts as slow."""


def check(view: JobView) -> Iterator[Claim]:
    if not view.gpus or not is_whole_job_training(view):
        return
    gpus = {(gpu.host, f"gpu slowed {gpu.index}"): gpu for gpu in view.gpus}
    for use in view.uses:
        gpu = gpus.get((use.host, use.name))
        if gpu is None or use.span < MIN_SPAN_S or use.rate < MIN_SLOWED_SHARE:
            continue
        if not gpu.slowed_by or gpu.clock_mhz > MAX_CLOCK_SHARE * (gpu.clock_limit_mhz or 1e9):
            continue
        members = members_on_gpu(view, gpu)
        if members:
            yield host_load_claim(
                members,
                f"GPU {gpu.index} of {gpu.host} was slowed down {min(1.0, use.rate):.0%} of the last "
                f"{use.span:.0f} s: {', '.join(gpu.slowed_by)}",
                Evidence(_observed(gpu), use.origin),
                f"on {gpu.host}: nvidia-smi -i {gpu.index} -q -d PERFORMANCE,TEMPERATURE,POWER",
            )


def _observed(gpu: Gpu) -> str:
    parts = [f"{gpu.clock_mhz} of {gpu.clock_limit_mhz} MHz", f"{gpu.temperature_c} °C"]
    if gpu.power_w:
        parts.append(f"{gpu.power_w:.0f} of {gpu.power_limit_w:.0f} W")
    return ", ".join(parts)


def _view(rate: float = 0.8, span: float = 30.0, **changes: object) -> JobView:
    use = Use(
        host="a", pid=0, name="gpu slowed 0", value=9.0, limit=0.0, rate=rate, fit=0.99, span=span,
        origin="NVML", recent=Trend(rate, 0.99, 15.0),
    )  # fmt: skip
    hot = example_gpu(0, pid=101, slowed_by=("too hot (hardware)",), clock_mhz=345)
    gpu = msgspec.structs.replace(hot, **changes)
    return sample_job(sample_member(0), sample_member(1), gpus=(gpu,), uses=(use,))


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a GPU is too hot 80 % of the time": (
            _view(),
            "GPU 0 of a was slowed down 80% of the last 30 s: too hot (hardware)",
        ),
        "a GPU is too hot, and its processes cannot be seen": (
            _view(processes=()),
            "GPU 0 of a was slowed down 80% of the last 30 s: too hot (hardware)",
        ),
    },
    silent_on={
        "a GPU is too hot 30 % of the time": _view(rate=0.3),
        "a GPU is too hot, but was observed for only 10 seconds": _view(span=10.0),
        "a slow GPU that only other programs use": msgspec.structs.replace(
            _view(), gpus=(example_gpu(0, pid=4711, slowed_by=("power brake",), clock_mhz=345),)
        ),
        "a GPU that was too hot, and is not any more": _view(slowed_by=()),
        "a GPU is reported as too hot, but runs at nearly its full clock": _view(clock_mhz=1900),
    },
    passes=True,
    unstaged="needs a GPU that is too hot; made from the documents of NVML, and read through a library with "
    "its symbols",
    relations=Relations(measured=True),
)
