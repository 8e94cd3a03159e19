"""Which links a follower tests for a leader that has proved nothing. Pure but for its memory.

The test of a link connects to an address and reports how that went. Without bounds, whoever answers at the
rendezvous address could scan the network from each host of the job.
"""

from __future__ import annotations

from collections.abc import Callable

from allaboard.analysis.roll_call.link_probe_schedule import MAX_ALL_PAIRS_HOSTS

MAX_REQUESTS = 4
"""Requests of one roll call: a first and a second round, and again for servers that came up late."""
MAX_TARGETS = MAX_ALL_PAIRS_HOSTS
"""Targets of one request; the schedule has fewer for each host."""
MIN_PORT = 1024
"""Lowest port: agents open their ports among those that need no privilege."""


class LinkLimits:
    """Counts the requests. ``job_hosts`` returns the hosts of the job; none if nobody named them all."""

    def __init__(self, job_hosts: Callable[[], set[str]]) -> None:
        self._job_hosts = job_hosts
        self._requests = 0

    def admit(self, targets: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        """Return those of these targets (name and address) that may be tested."""
        self._requests += 1
        if self._requests > MAX_REQUESTS or len(targets) > MAX_TARGETS:
            return ()
        hosts = self._job_hosts()
        return tuple(t for t in targets if _is_of_job(t[1], hosts))


def _is_of_job(address: str, hosts: set[str]) -> bool:
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) < MIN_PORT:
        return False
    return not hosts or host in hosts
