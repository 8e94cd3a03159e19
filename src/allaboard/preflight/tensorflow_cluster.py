"""TensorFlow's cluster, made from the known hosts if no TF_CONFIG lists it. Pure.

Without a list of all tasks MultiWorkerMirroredStrategy takes each of them for a job of its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from allaboard.facts import ClusterSpec
from allaboard.facts.address import join_host_port


def cluster_of_allocation(spec: ClusterSpec, rank: int, size: int, port: int) -> dict[str, str]:
    """Return "worker:0" to address for Slurm's hosts and their tasks; ports count up from ``port`` on each
    host.

    It is empty if the allocation does not say which host this rank is on.
    """
    node_rank = spec.number("node_rank")
    shares_hosts = len(spec.machines) < size
    if any(m.slots < 1 for m in spec.machines) and shares_hosts:
        return {}
    counts = [max(m.slots, 1) if shares_hosts else 1 for m in spec.machines]
    slots = [(n, i) for n, count in enumerate(counts) for i in range(count)]
    if len(slots) != size or node_rank is None or slots[rank][0] != node_rank:
        return {}  # as where tasks are not numbered host by host: srun --distribution
    return {
        f"worker:{r}": join_host_port(spec.machines[n].name.text, port + i)
        for r, (n, i) in enumerate(slots)
    }


def cluster_of_hosts(hosts: Sequence[str], port: int, first_address: str = "") -> dict[str, str]:
    """Return a cluster of one worker per host. ``first_address`` is the address of the first worker if it
    is a different one."""
    cluster = {f"worker:{r}": join_host_port(host, port) for r, host in enumerate(hosts)}
    return cluster | ({"worker:0": first_address} if first_address else {})


def format_tf_config(cluster: dict[str, str], job: str, index: int) -> str:
    """Return the value of TF_CONFIG for this task of the cluster."""
    addresses_by_job: dict[str, list[str]] = {}
    for name, address in cluster.items():
        addresses_by_job.setdefault(name.partition(":")[0], []).append(address)
    return json.dumps({"cluster": addresses_by_job, "task": {"type": job, "index": index}})
