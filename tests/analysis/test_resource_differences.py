"""What the slow rank's resources have that the others' lack, and who holds memory that a rank ran out of."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.analysis.resources.gpu_holders import example_gpu
from allaboard.analysis.resources.resource_differences import find_differences
from allaboard.facts import GpuProcess, Use
from allaboard.facts.samples import ended_member, sample_job, sample_member, waiting_member
from allaboard.rules import res001_out_of_memory, slow001_straggler


def use(name: str, rate: float, host: str = "a", pid: int = 0, span: float = 20.0) -> Use:
    return Use(
        host=host,
        pid=pid,
        name=name,
        value=9.0,
        limit=0.0,
        rate=rate,
        fit=0.9,
        span=span,
        origin="x",
    )


def differences(*uses: Use, same_host: bool = False) -> list[str]:
    members = [sample_member(n) for n in range(3)]
    if not same_host:
        who = msgspec.structs.replace(members[1].who, host="b")
        members[1] = msgspec.structs.replace(members[1], who=who)
    view = sample_job(*members, uses=uses)
    found = find_differences(view, (view.members[1],), (view.members[0], view.members[2]))
    return [difference.evidence.observed for difference in found]


@pytest.mark.parametrize(
    ("uses", "said"),
    [
        (
            (use("steal", 0.3, "b"), use("steal", 0.01)),
            "the hypervisor takes 30% of the host's CPU time",
        ),
        ((use("steal", 0.3, "b"),), "the hypervisor takes 30% of the host's CPU time"),
        ((use("steal", 0.3, "b"), use("steal", 0.2)), ""),
        ((use("steal", 0.02, "b"), use("steal", 0.0)), ""),
        ((use("steal", 0.3, "b", span=2.0),), ""),
        ((use("steal", 0.3),), ""),
        ((use("io pressure", 0.5, "b"),), "tasks of the host wait for disks 50% of the time"),
        ((use("throttled", 0.4, "b", pid=101),), "its cgroup is throttled 0.40 s a second"),
    ],
)
def test_counters_of_the_hosts(uses: tuple[Use, ...], said: str) -> None:
    assert differences(*uses) == ([said] if said else [])


def test_a_counter_of_one_host_tells_nothing_between_its_ranks() -> None:
    assert differences(use("steal", 0.3), same_host=True) == []
    waits = (use("queued", 0.6, pid=101), use("queued", 0.1, pid=100), use("queued", 0.2, pid=102))
    assert differences(*waits, same_host=True) == [
        "its main thread waits for a core 60% of the time"
    ]


def test_the_finding_about_a_slow_rank_says_what_only_it_has() -> None:
    slow, _ = slow001_straggler.RULE.fires_on["one of three workers is slow in its own code"]
    waits = (use("queued", 0.6, pid=101), use("queued", 0.1, pid=100), use("queued", 0.2, pid=102))
    (claim,) = slow001_straggler.check(msgspec.structs.replace(slow, uses=waits))
    observed = [evidence.observed for evidence in claim.evidence]
    assert "its main thread waits for a core 60% of the time" in observed
    assert "top -b -n 1" in claim.fix
    (claim,) = slow001_straggler.check(msgspec.structs.replace(slow, uses=waits[1:]))
    assert not any("waits for a core" in evidence.observed for evidence in claim.evidence)
    assert "py-spy record" in claim.fix


def test_a_gpu_that_only_the_slow_rank_uses() -> None:
    hot = example_gpu(1, pid=101, slowed_by=("power brake",), clock_mhz=345)
    shared = example_gpu(0, pid=100, slowed_by=("power brake",))
    view = sample_job(*(sample_member(n) for n in range(3)), gpus=(shared, hot))
    (found,) = find_differences(view, (view.members[1],), (view.members[0], view.members[2]))
    assert found.evidence.observed == "GPU 1 runs at 345 of 1980 MHz: power brake"


def test_who_else_holds_the_memory_that_a_rank_ran_out_of() -> None:
    other = GpuProcess(pid=4711, memory_nbytes=70_000_000_000, command="python3")
    gpu = msgspec.structs.replace(example_gpu(0, pid=101), processes=(other,))
    error = ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ...")
    view = sample_job(waiting_member(0), ended_member(1, raised=error), gpus=(gpu,))
    (claim,) = res001_out_of_memory.check(view)
    observed = [evidence.observed for evidence in claim.evidence]
    assert "python3 (pid 4711), which is not of this job, holds 70.0 GB on GPU 0" in observed
