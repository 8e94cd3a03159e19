"""TensorFlow's cluster where no TF_CONFIG lists it, from the hosts that are known. Pure.

Without a list of all tasks MultiWorkerMirroredStrategy takes each of them for a job of its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from allaboard.facts import ClusterSpec
from allaboard.facts.address import join


def of_allocation(spec: ClusterSpec, rank: int, size: int, port: int) -> dict[str, str]:
    """Slurm's hosts and their tasks, "worker:0" to address; ports count up from ``port`` on each host.
    Empty where they do not say which host this rank is on."""
    at = spec.number("node_rank")
    several = len(spec.machines) < size
    if any(m.slots < 1 for m in spec.machines) and several:
        return {}
    counts = [max(m.slots, 1) if several else 1 for m in spec.machines]
    places = [(n, i) for n, count in enumerate(counts) for i in range(count)]
    if len(places) != size or at is None or places[rank][0] != at:
        return {}  # as where tasks are not numbered host by host: srun --distribution
    return {
        f"worker:{r}": join(spec.machines[n].name.text, port + i) for r, (n, i) in enumerate(places)
    }


def of_hosts(hosts: Sequence[str], port: int, first: str = "") -> dict[str, str]:
    """One worker a host; ``first`` is the address of the first one where it is another."""
    cluster = {f"worker:{r}": join(host, port) for r, host in enumerate(hosts)}
    return cluster | ({"worker:0": first} if first else {})


def tf_config(cluster: dict[str, str], job: str, index: int) -> str:
    """The value of TF_CONFIG for this task of the cluster."""
    listed: dict[str, list[str]] = {}
    for name, place in cluster.items():
        listed.setdefault(name.partition(":")[0], []).append(place)
    return json.dumps({"cluster": listed, "task": {"type": job, "index": index}})
