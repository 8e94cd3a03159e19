"""Where the newest values of the servers' variables are kept: beside the chief, whose session restores them.
What ends a server takes none of them along. And in the memory of a second host, which is left when the
chief's is lost. Pure."""

from __future__ import annotations

from allaboard.analysis.parameter_servers.parameter_servers import chief
from allaboard.facts import Address, JobView


def keeps_snapshots(view: JobView) -> bool:
    """Whether this agent is the one to keep them: the chief is its own, and trains."""
    return _trains_here(view, chief(view))


def keeps_snapshot_copies(view: JobView) -> bool:
    """Whether this agent is the second one: the first worker besides the chief is its own, trains, and was
    told that the chief is on another host."""
    first = chief(view)
    second = ("worker", 1 if first == ("worker", 0) else 0)
    if not view.joined or not _trains_here(view, second):
        return False
    told = (m.declared.cluster for m in view.members if m.declared is not None and not m.elsewhere)
    cluster = next(iter(told), {})
    places = [_host(cluster.get(f"{job}:{index}", "")) for job, index in (first, second)]
    return all(places) and places[0] != places[1]


def _trains_here(view: JobView, task: tuple[str, int]) -> bool:
    mine = (m for m in view.members if (m.who.job, m.who.index) == task and not m.elsewhere)
    return any(m.alive and m.step for m in mine)


def _host(address: str) -> str:
    return Address.from_endpoint(address).host
