"""LOCAL_RANK is out of its range, or above the devices that the process can see.

## Why it matters
LOCAL_RANK picks the GPU. If it is not below the number of visible devices, the process fails with `invalid
device ordinal`. The other slip, a LOCAL_RANK of 0 in every process, puts all of them onto one GPU, where
NCCL hangs.

## What to do
Start as many processes as there are devices, or make more devices visible.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Evidence, LocalHost, Severity
from allaboard.facts.configuration.config_facts import sample_config_facts


def check(facts: ConfigFacts) -> Iterator[Claim]:
    value = facts.spec.values.get("local_rank")
    number = value.integer if value is not None else None
    if value is None or number is None:
        return
    name = value.origin.variable or "local rank"
    size = facts.spec.values.get("local_world_size")
    count = size.integer if size is not None else None
    if number < 0 or (count is not None and size is not None and number >= count):
        span = f"0 to {count - 1}" if count else "0 or more"
        yield Claim(
            summary=f"{name} is {number}: it must be {span}",
            who=own_member(facts.spec),
            evidence=(value.evidence, *((size.evidence,) if size is not None else ())),
            fix=f"export {name}=0",
            where=value.origin.editor_place,
        )
        return
    visible, device_evidence = _visible_devices(facts)
    if (
        device_evidence is None
        or visible < 1
        or number < visible
        or facts.spec.framework == "tensorflow"
    ):
        return
    yield Claim(
        summary=f"{name} is {number}, but this process can see {visible} "
        f"GPU{'s' if visible > 1 else ''} (0 to {visible - 1})",
        who=own_member(facts.spec),
        evidence=(value.evidence, device_evidence),
        fix=f"start {visible} process{'es' if visible > 1 else ''} here: "
        f"torchrun --nproc-per-node={visible} …",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=value.origin.editor_place,
    )


def _visible_devices(facts: ConfigFacts) -> tuple[int, Evidence | None]:
    """Return how many GPUs this process can see, and the evidence; 0 and None if unknown or not used."""
    backend = facts.spec.values.get("backend")
    if backend is not None and "nccl" not in backend.text:
        return 0, None
    visible_devices = facts.variables.get("CUDA_VISIBLE_DEVICES")
    # A launcher that gives each process a device of its own sets it for that process alone.
    if visible_devices is not None and visible_devices.text.strip() not in ("", "-1", "NoDevFiles"):
        listed = [d for d in visible_devices.text.split(",") if d.strip()]
        return (len(listed), visible_devices.evidence) if len(listed) > 1 else (0, None)
    gpus = facts.host.gpus if facts.host is not None else -1
    if visible_devices is not None or gpus < 1:
        return 0, None
    return gpus, Evidence(f"{gpus} GPUs", "/dev/nvidia*")


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "LOCAL_RANK is 4 with LOCAL_WORLD_SIZE=4": (
            sample_config_facts(local_rank="4", local_world_size="4"),
            "LOCAL_RANK is 4: it must be 0 to 3",
        ),
        "LOCAL_RANK is 2 where the process sees two GPUs": (
            sample_config_facts(local_rank="2", variables={"CUDA_VISIBLE_DEVICES": "0,1"}),
            "LOCAL_RANK is 2, but this process can see 2 GPUs (0 to 1)",
        ),
    },
    silent_on={
        "LOCAL_RANK is 1 where the process sees two GPUs": sample_config_facts(
            local_rank="1", variables={"CUDA_VISIBLE_DEVICES": "0,1"}
        ),
        "each process sees only its own GPU": sample_config_facts(
            local_rank="2", variables={"CUDA_VISIBLE_DEVICES": "2"}
        ),
        "a host without any GPU": sample_config_facts(local_rank="2", host=LocalHost(gpus=0)),
    },
)
