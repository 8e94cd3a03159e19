"""Which agents keep the newest values of the servers' variables.

The agent of the chief does, since the chief's session restores them: the end of a server takes none of them
along. And one on a second host keeps a copy in memory, which is left if the host of the chief is lost. Pure.
"""

from __future__ import annotations

from allaboard.analysis.parameter_servers import chief_task
from allaboard.facts import Address, JobView


def keeps_snapshots(view: JobView) -> bool:
    """Return True if this agent is to keep the snapshots: the chief is its own, and trains."""
    return _trains_here(view, chief_task(view))


def keeps_snapshot_copies(view: JobView) -> bool:
    """Return True if this agent is to keep the copies: the first worker besides the chief is its own, trains,
    and its cluster has the chief on another host."""
    task_of_chief = chief_task(view)
    second_task = ("worker", 1 if task_of_chief == ("worker", 0) else 0)
    if not view.joined or not _trains_here(view, second_task):
        return False
    clusters = (
        m.declared.cluster
        for m in view.members
        if m.declared is not None and not m.is_on_other_host
    )
    cluster = next(iter(clusters), {})
    hosts = [
        _host(cluster.get(f"{job}:{index}", "")) for job, index in (task_of_chief, second_task)
    ]
    return all(hosts) and hosts[0] != hosts[1]


def _trains_here(view: JobView, task: tuple[str, int]) -> bool:
    processes = (
        m for m in view.members if (m.who.job, m.who.index) == task and not m.is_on_other_host
    )
    return any(m.alive and m.step for m in processes)


def _host(address: str) -> str:
    return Address.from_endpoint(address).host
