"""Samples how much the processes of this host exchange with others.

Connections are grouped by task if the job has parameter servers, by host in other jobs on several hosts. The
kernel is asked in a thread: with many sockets the answer takes a while, and nothing has to wait for it.
"""

from __future__ import annotations

import asyncio
import socket
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from allaboard.facts import Address, Declared, Flow, Flows
from allaboard.hosts.tcp_info import tcp_flows as flows_of
from allaboard.protocol.events import Event, ProcessExited, ProcessSampled, TrafficSampled

SAMPLE_INTERVAL_S = 1.0
"""Seconds between two samples."""
MAX_FAILURES_IN_A_ROW = 10
"""Samples in a row that must fail before sampling stops."""


class TrafficSampler:
    """Samples the connections of all members of this host; ``now`` returns CLOCK_MONOTONIC in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._declared: dict[int, Declared] = {}
        self._resolved: dict[str, str] = {}
        self._samples: list[Event] = []
        self._sampling: asyncio.Future[None] | None = None
        self._next_at = 0.0
        self._failures = 0
        self.sampling_error = ""
        """Why nothing is measured any more; "" while it is."""

    def collect_samples(self, now: float, events: Iterable[Event]) -> list[Event]:
        """Return the newest sample once, and begin the next one when it is due.

        ``events`` tell which process is which member.
        """
        for event in events:
            if isinstance(event, ProcessExited):
                self._declared.pop(event.pid, None)
            elif isinstance(event, ProcessSampled) and event.box is not None:
                declared = event.box.declared
                if declared is not None and _has_peers(declared):
                    self._declared[event.pid] = declared
        idle = self._sampling is None or self._sampling.done()
        if self._declared and idle and now >= self._next_at and not self.sampling_error:
            self._next_at = now + SAMPLE_INTERVAL_S
            loop = asyncio.get_running_loop()
            # In a thread: to ask for every connection of a busy host takes long, and a name server may hang.
            # A copy goes to it, since this loop goes on changing the original.
            self._sampling = loop.run_in_executor(None, self._sample, dict(self._declared))
        samples, self._samples = self._samples, []
        return samples

    def _sample(self, declared: dict[int, Declared]) -> None:
        try:
            flows = flows_of(declared)
        except Exception as error:  # whatever the kernel answers: the job goes on, unmeasured
            self._failures += 1  # the kernel breaks a dump of sockets off while many come and go
            if self._failures >= MAX_FAILURES_IN_A_ROW:
                self.sampling_error = f"connections are not measured: {error!r}"
            return
        self._failures = 0
        sampled_at = self._now()
        addresses = {pid: self._addresses(d.cluster) for pid, d in declared.items()}
        grouped = group_flows(flows, declared, addresses)
        self._samples += [
            TrafficSampled(pid=pid, sampled_at=sampled_at, flows=each)
            for pid, each in grouped.items()
        ]

    def _addresses(self, cluster: Mapping[str, str]) -> dict[str, str]:
        """Return the name of each task by its numeric address."""
        return {self._numeric_address(address): task for task, address in cluster.items()}

    def _numeric_address(self, address: str) -> str:
        """``host:port`` with the host's first address; as it is where the name is not to be found now."""
        if address not in self._resolved:
            host, port = Address.from_endpoint(address)[:2]
            try:
                info = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except OSError:
                return address
            self._resolved[address] = f"{info[0][4][0]}:{port}"
        return self._resolved[address]


def _has_peers(declared: Declared) -> bool:
    return has_parameter_servers(declared.cluster) or (
        declared.world_size > 1 and not declared.local
    )


def group_flows(
    flows: Mapping[int, tuple[Flow, ...]],
    declared: Mapping[int, Declared],
    addresses: Mapping[int, Mapping[str, str]],
) -> dict[int, tuple[Flows, ...]]:
    """Return the flows of each process, by task or by host.

    A server to which nobody is connected any more gets an empty entry: otherwise its last sample would count
    for ever.
    """
    server_jobs = {pid: d for pid, d in declared.items() if has_parameter_servers(d.cluster)}
    grouped = group_by_task({p: flows.get(p, ()) for p in server_jobs}, server_jobs, addresses)
    return grouped | group_by_host({p: f for p, f in flows.items() if p not in server_jobs})


def group_by_host(flows: Mapping[int, tuple[Flow, ...]]) -> dict[int, tuple[Flows, ...]]:
    """Return the flows of each process by the address of the remote host; flows within this host are left
    out."""
    grouped = {}
    for pid, process_flows in flows.items():
        groups: dict[str, list[Flow]] = defaultdict(list)
        for flow in process_flows:
            remote_host = _host(flow.remote)
            if remote_host != _host(flow.local) and not remote_host.startswith("127."):
                groups[remote_host].append(flow)
        grouped[pid] = tuple(Flows(host, tuple(each)) for host, each in sorted(groups.items()))
    return grouped


def _host(end: str) -> str:
    return Address.from_endpoint(end).host


def has_parameter_servers(cluster: Mapping[str, str]) -> bool:
    return any(task.startswith("ps:") for task in cluster)


def group_by_task(
    flows: Mapping[int, tuple[Flow, ...]],
    declared: Mapping[int, Declared],
    addresses: Mapping[int, Mapping[str, str]],
) -> dict[int, tuple[Flows, ...]]:
    """Return the flows of each process by the task at their other end.

    The side that opened a connection knows its peer by the listed address. The called side knows it by the
    socket at the other end if that is on this host, else by the remote host if only one task is listed there.
    """
    callers = {
        flow.local: task_name(declared[pid])
        for pid, process_flows in flows.items()
        for flow in process_flows
    }
    grouped: dict[int, tuple[Flows, ...]] = {}
    for pid, process_flows in flows.items():
        listed = addresses[pid]
        hosts: dict[str, set[str]] = defaultdict(set)
        for address, task in listed.items():
            hosts[Address.from_endpoint(address).host].add(task)
        groups: dict[str, list[Flow]] = defaultdict(list)
        for flow in process_flows:
            peer = listed.get(flow.remote) or callers.get(flow.remote)
            candidates = hosts.get(Address.from_endpoint(flow.remote).host, set())
            if peer is None and len(candidates) == 1:
                peer = next(iter(candidates))
            if peer is not None and peer != task_name(declared[pid]):
                groups[peer].append(flow)
        grouped[pid] = tuple(Flows(task, tuple(each)) for task, each in sorted(groups.items()))
    return grouped


def task_name(declared: Declared) -> str:
    return f"{declared.job}:{declared.index}"
