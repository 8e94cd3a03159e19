"""Whether all hosts of a job can be started again together, as the host that decides knows it. Pure."""

from __future__ import annotations

import msgspec

FILE = "file://"


class Hosts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the hosts of a job when a round of it has ended. ``expected``: how many agents it has
    (0: not known), ``here`` how many hear each other now, our own included; ``gone`` are the hosts whose
    agents were here and are not any more, ``others`` those whose user asked for no restart; ``plain``
    says who runs without allaboard; ``place`` is where the framework meets."""

    expected: int
    here: int
    gone: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    plain: str = ""
    place: str = ""


def hindrance(hosts: Hosts) -> str:
    """Why no further round can be started on all of them; "" where nothing is in its way."""
    if hosts.others:
        return f"--on-failure restart is not given on {_names(hosts.others)}"
    if hosts.gone:
        return (
            f"{_names(hosts.gone)} {_has(hosts.gone)} gone with its agent: what ran there cannot be "
            "started again from here"
        )
    if hosts.plain:
        return f"{hosts.plain}: it cannot be started again from here"
    if hosts.here < hosts.expected:
        return (
            f"{hosts.here} of {hosts.expected} agents are here: the others cannot be started again"
        )
    if hosts.place.startswith(FILE):
        return (
            f"all meet through {hosts.place}, which still holds what this round wrote; "
            "with env:// or tcp:// it can be started again"
        )
    return ""


def orphaned(leader: str) -> str:
    """Why a host whose leader has gone starts nothing."""
    return f"the agent at {leader}, which decides for all hosts what is started again, has gone"


def _names(hosts: tuple[str, ...]) -> str:
    return ", ".join(hosts[:4]) + (f" and {len(hosts) - 4} more" if len(hosts) > 4 else "")


def _has(hosts: tuple[str, ...]) -> str:
    return "has" if len(hosts) == 1 else "have"
