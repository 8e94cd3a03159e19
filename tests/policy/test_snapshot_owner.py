"""Which agent keeps the snapshots of a job on several hosts."""

from __future__ import annotations

import msgspec

from allaboard.facts import JobView, Member
from allaboard.facts.samples import ps_member, sample_job
from allaboard.policy.restart.snapshot_owner import keeps_snapshot_copies, keeps_snapshots


def far(member: Member) -> Member:
    """As the host where all meet knows a member of another host."""
    return msgspec.structs.replace(member, key=(1 << 32) + member.who.pid)


def test_it_is_the_agent_of_the_chief_once_that_trains() -> None:
    assert keeps_snapshots(sample_job(ps_member("worker", 0, step=5), far(ps_member("ps", 0))))
    assert not keeps_snapshots(sample_job(ps_member("worker", 0, step=0), far(ps_member("ps", 0))))
    assert not keeps_snapshots(sample_job(far(ps_member("worker", 0, step=5)), ps_member("ps", 0)))
    assert not keeps_snapshots(
        sample_job(far(ps_member("worker", 0, step=5)), ps_member("worker", 1, step=5))
    )


def test_a_host_that_hears_of_nobody_else_knows_the_chief_by_the_cluster() -> None:
    assert keeps_snapshots(sample_job(ps_member("worker", 0, step=5)))
    assert not keeps_snapshots(sample_job(ps_member("worker", 1, step=5)))
    assert not keeps_snapshots(sample_job(ps_member("ps", 0)))


APART = {"worker:0": "h0:1", "worker:1": "h1:1", "ps:0": "h2:1"}
TOGETHER = {"worker:0": "h0:1", "worker:1": "h0:2", "ps:0": "h2:1"}


def one(cluster: dict[str, str], index: int = 1, step: int = 5) -> JobView:
    """The host of one worker, which hears of nobody else."""
    made = ps_member("worker", index, step=step)
    assert made.declared is not None
    told = msgspec.structs.replace(made.declared, cluster=cluster)
    return sample_job(msgspec.structs.replace(made, declared=told), joined=True)


def test_the_second_is_the_first_worker_on_another_host() -> None:
    assert keeps_snapshot_copies(one(APART))
    assert not keeps_snapshots(one(APART))
    assert not keeps_snapshot_copies(one(APART, step=0))
    assert not keeps_snapshot_copies(one(APART, index=0))
    assert not keeps_snapshot_copies(one(TOGETHER))


def test_where_there_is_a_chief_it_is_worker_0() -> None:
    cluster = {"chief:0": "h0:1", "worker:0": "h1:1", "worker:1": "h2:1", "ps:0": "h3:1"}
    assert keeps_snapshot_copies(one(cluster, index=0))
    assert not keeps_snapshot_copies(one(cluster, index=1))


def test_on_one_host_there_is_no_second() -> None:
    view = msgspec.structs.replace(one(APART), joined=False)
    assert not keeps_snapshot_copies(view)
