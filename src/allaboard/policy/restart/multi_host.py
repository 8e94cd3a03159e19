"""When all hosts of a job can be restarted together, as the deciding host knows it. Pure."""

from __future__ import annotations

import msgspec

FILE_SCHEME = "file://"

MAX_SHOWN_HOSTS = 4


class RoundHosts(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts of a job when a round of it has ended, as the deciding host knows them."""

    expected_agents: int
    """Number of agents of the job; 0 if it is not known."""
    connected_agents: int
    """Number of agents that hear each other now, our own among them."""
    lost_hosts: tuple[str, ...] = ()
    """Hosts whose agents were connected and are not any more."""
    hosts_without_restart: tuple[str, ...] = ()
    """Hosts whose user did not ask for restarts."""
    unwatched_host: str = ""
    """Which host runs without allaboard, as a clause; "" if none does."""
    meeting_place: str = ""
    """Rendezvous address of the framework."""


def restart_hindrance(hosts: RoundHosts) -> str:
    """Return why no further round can be started on all hosts; "" if nothing is in its way."""
    if hosts.hosts_without_restart:
        return f"--on-failure restart is not given on {_host_names(hosts.hosts_without_restart)}"
    if hosts.lost_hosts:
        verb = "is" if len(hosts.lost_hosts) == 1 else "are"
        return f"{_host_names(hosts.lost_hosts)} {verb} lost: the workers there cannot be restarted from here"
    if hosts.unwatched_host:
        return f"{hosts.unwatched_host}: it cannot be restarted from here"
    if hosts.connected_agents < hosts.expected_agents:
        return (
            f"{hosts.connected_agents} of {hosts.expected_agents} agents are connected: "
            "the workers of the others cannot be restarted"
        )
    if hosts.meeting_place.startswith(FILE_SCHEME):
        return (
            f"the workers meet through {hosts.meeting_place}, which still holds the entries of this "
            "round; with env:// or tcp:// the job can be restarted"
        )
    return ""


def lost_leader_reason(leader: str) -> str:
    """Return why a host that has lost its leader restarts nothing."""
    return f"the agent at {leader}, which decides about restarts for all hosts, is lost"


def _host_names(hosts: tuple[str, ...]) -> str:
    names = ", ".join(hosts[:MAX_SHOWN_HOSTS])
    hidden_hosts = len(hosts) - MAX_SHOWN_HOSTS
    return f"{names} and {hidden_hosts} more" if hidden_hosts > 0 else names
