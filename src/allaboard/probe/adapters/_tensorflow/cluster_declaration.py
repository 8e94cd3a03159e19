"""The cluster that a TensorFlow process declares in the arguments of a server or a strategy."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OWN_CLUSTER: dict[str, str] = {}
"""Task ("ps:0") -> address, as this process's own `Server` was given; empty without one."""
JOB_ORDER = ("chief", "master", "worker", "ps")
"""Order in which the tasks of a cluster get their ranks: those that train before those that serve."""
LOOPBACK_PREFIXES = ("127.", "localhost:", "[::1]:")


def is_on_one_host(addresses: list[str]) -> bool:
    """Return True if every address is a loopback address."""
    return all(address.startswith(LOOPBACK_PREFIXES) for address in addresses)


def jobs_of_cluster(cluster: Any) -> dict[str, dict[int, str]]:
    """Return job -> task index -> address of a ClusterSpec, a ClusterDef or a dict."""
    if hasattr(cluster, "as_dict"):
        cluster = cluster.as_dict()
    if isinstance(cluster, dict):
        return {
            job: dict(tasks) if isinstance(tasks, dict) else dict(enumerate(tasks))
            for job, tasks in cluster.items()
        }
    return {job.name: dict(job.tasks) for job in cluster.job}


def declaration_of_task(
    jobs: dict[str, dict[int, str]], job: str | None, index: int | None, call: str, origin: str
) -> dict[str, Any] | None:
    """Return what task ``job``:``index`` says of itself in a cluster with parameter servers; None
    if it is in no cluster of several tasks.

    ``call`` names the function that was called, ``origin`` where its arguments come from.
    """
    known_jobs = [j for j in JOB_ORDER if j in jobs]
    known_jobs += sorted(j for j in jobs if j not in JOB_ORDER)
    tasks = [(j, i) for j in known_jobs for i in sorted(jobs[j])]
    index = 0 if index is None else int(index)
    if len(tasks) < 2 or job is None or (job, index) not in tasks:
        return None
    addresses = [jobs[j][i] for j, i in tasks]
    first_job = next((j for j in ("chief", "master") if j in jobs), "worker")
    return {
        "framework": "tensorflow",
        "call": call,
        "rank": tasks.index((job, index)),
        "world_size": len(tasks),
        "job": job,
        "index": index,
        "cluster": {"%s:%d" % task: a for task, a in zip(tasks, addresses)},
        "origin": origin,
        "local": is_on_one_host(addresses),
        # Servers come up in any order by design, and programs wait for them in code of their own:
        # only the task that waits for all others anyway may be held.
        "hold": job == first_job,
    }
