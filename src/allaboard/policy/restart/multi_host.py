"""Whether all hosts of a job can be started again together, as the host that decides knows it. Pure."""

from __future__ import annotations

import msgspec

FILE_SCHEME = "file://"


class RoundHosts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the hosts of a job when a round of it has ended. ``expected``: how many agents it has
    (0: not known), ``here`` how many hear each other now, our own included; ``gone`` are the hosts whose
    agents were here and are not any more, ``others`` those whose user asked for no restart; ``plain``
    says who runs without allaboard; ``place`` is where the framework meets."""

    expected_agents: int
    connected_agents: int
    lost_hosts: tuple[str, ...] = ()
    hosts_without_restart: tuple[str, ...] = ()
    unwatched_host: str = ""
    meeting_place: str = ""


def restart_hindrance(hosts: RoundHosts) -> str:
    """Why no further round can be started on all of them; "" where nothing is in its way."""
    if hosts.hosts_without_restart:
        return f"--on-failure restart is not given on {_names(hosts.hosts_without_restart)}"
    if hosts.lost_hosts:
        return (
            f"{_names(hosts.lost_hosts)} {_has(hosts.gone)} gone with its agent: what ran there cannot be "
            "started again from here"
        )
    if hosts.unwatched_host:
        return f"{hosts.unwatched_host}: it cannot be started again from here"
    if hosts.connected_agents < hosts.expected_agents:
        return f"{hosts.connected_agents} of {hosts.expected_agents} agents are here: the others cannot be started again"
    if hosts.meeting_place.startswith(FILE_SCHEME):
        return (
            f"all meet through {hosts.meeting_place}, which still holds what this round wrote; "
            "with env:// or tcp:// it can be started again"
        )
    return ""


def lost_leader_reason(leader: str) -> str:
    """Why a host whose leader has gone starts nothing."""
    return f"the agent at {leader}, which decides for all hosts what is started again, has gone"


def _names(hosts: tuple[str, ...]) -> str:
    return ", ".join(hosts[:4]) + (f" and {len(hosts) - 4} more" if len(hosts) > 4 else "")


def _has(hosts: tuple[str, ...]) -> str:
    return "has" if len(hosts) == 1 else "have"
