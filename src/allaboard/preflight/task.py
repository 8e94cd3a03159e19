"""The task that this preflight stands in for, as the environment describes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from allaboard.configuration import resolve
from allaboard.errors import AllaboardError
from allaboard.facts import Address, ClusterSpec
from allaboard.preflight.tensorflow_cluster import cluster_of_allocation, format_tf_config

DEFAULT_MEETING_PORT = 29500
"""Where the job meets when only its first host is known; torchrun's default."""
FRAMEWORKS = ("torch", "tensorflow", "jax")
_NAMES = {"pytorch": "torch"}
EXAMPLE = "RANK=0 WORLD_SIZE=2 MASTER_ADDR=node0 MASTER_PORT=29500 allaboard preflight"


class UnstatedTaskError(AllaboardError):
    """The environment does not say which task this is; the message says what is missing and what to
    type."""


class Task(NamedTuple):
    """One task of the job."""

    framework: str
    """torch, tensorflow or jax."""
    rank: int
    size: int
    """How many tasks the job has."""
    meeting_address: str
    """HOST:PORT where all meet; "" with a ``cluster``, whose first task's address it is."""
    job: str
    """TensorFlow's name of the job, as "worker"; "worker" for other frameworks."""
    task_index: int
    """TensorFlow's index within the job; the rank for other frameworks."""
    cluster: dict[str, str]
    """"worker:0" to address, for TensorFlow; else empty."""
    origin: str
    """The variables from which this was read."""


def task_of_environment(
    variables: Mapping[str, str],
    framework: str = "",
    coordinator: str = "",
    is_meeting_optional: bool = False,
    read_file: Callable[[str], str] | None = None,
) -> Task:
    """Return the task that these variables describe.

    ``framework`` and ``coordinator`` (HOST:PORT) come from the user and win. With ``is_meeting_optional``
    no meeting address need be known.

    Raises:
        UnstatedTaskError: the variables do not say enough.
    """
    spec = resolve(variables, read_file)
    framework_name = framework or _NAMES.get(spec.framework, spec.framework)
    origin = _origin(spec)
    if spec.cluster and framework_name in ("", "tensorflow"):
        return _task_of_cluster(spec, origin)
    rank, size = spec.number("rank"), spec.number("world_size")
    if rank is None or size is None:
        raise UnstatedTaskError(
            "nothing here says which task of how many this is: no TF_CONFIG, no RANK and WORLD_SIZE, "
            f"no Slurm, Open MPI or JAX variables; start it as the job is started, or: {EXAMPLE}"
        )
    if not 0 <= rank < size:
        raise UnstatedTaskError(
            f"rank {rank} of {size} [{origin}]: ranks count from 0 to {size - 1}"
        )
    if framework_name == "tensorflow":
        port = spec.number("master_port") or DEFAULT_MEETING_PORT
        if cluster := cluster_of_allocation(spec, rank, size, port):
            return Task(framework_name, rank, size, "", "worker", rank, cluster, origin)
    meeting_address = coordinator or _meeting_address(spec)
    if not meeting_address and not is_meeting_optional:
        raise UnstatedTaskError(
            f"rank {rank} of {size} [{origin}], and nothing says where all meet; "
            "add --coordinator HOST:PORT, the same on every host, or set MASTER_ADDR and MASTER_PORT"
        )
    return Task(
        framework_name if framework_name in FRAMEWORKS else "torch",
        rank,
        size,
        meeting_address,
        "worker",
        rank,
        {},
        origin,
    )


def _origin(spec: ClusterSpec) -> str:
    """Return the names of the variables that say which task this is and where all meet."""
    values = [
        spec.values.get(n)
        for n in ("rank", "world_size", "coordinator", "master_addr", "master_port")
    ]
    values += [value for *_, value in spec.tasks()]
    return ", ".join(dict.fromkeys(v.origin.variable for v in values if v and v.origin.variable))


def _task_of_cluster(spec: ClusterSpec, origin: str) -> Task:
    index = spec.index.integer if spec.index is not None else None
    own_task = (spec.job.text if spec.job is not None else "", index)
    rank = spec.rank
    if rank < 0 or index is None:
        raise UnstatedTaskError(
            f"{own_task[0]} {own_task[1]} is no task of the cluster in {origin}; see: allaboard check"
        )
    cluster = {f"{job}:{i}": address.text for job, i, address in spec.ranked_tasks}
    return Task("tensorflow", rank, spec.world_size, "", own_task[0], index, cluster, origin)


def _meeting_address(spec: ClusterSpec) -> str:
    """Return host:port of the meeting, else of the first host of the allocation; "" if neither is said."""
    address = spec.meeting_address if not spec.cluster else spec.coordinator or spec.master
    if address is not None:
        return str(address)
    master = spec.values.get("master_addr")
    host = master.text if master is not None else ""
    if not host and spec.machines:
        host = spec.machines[0].name.text
    return (
        str(Address(host, str(spec.number("master_port") or DEFAULT_MEETING_PORT))) if host else ""
    )


def task_declaration(task: Task) -> dict[str, object]:
    """Return what the stand-in declares at the roll call, as a framework's hook would."""
    return {
        "framework": task.framework,
        "call": "preflight",
        "rank": task.rank,
        "world_size": task.size,
        "job": task.job,
        "index": task.task_index,
        "place": f"tcp://{task.meeting_address}" if task.meeting_address else "",
        "cluster": task.cluster,
        "origin": task.origin,
        "local": False,
    }


def stand_in_settings(task: Task, mode: str, stall_limit_s: float) -> str:
    """Return the settings of the stand-in as JSON, for its environment. ``stall_limit_s`` bounds its
    collective."""
    text = msgspec.json.encode(
        {"declared": task_declaration(task), "mode": mode, "bound": stall_limit_s}
    )
    return text.decode()


def task_variables(task: Task) -> dict[str, str]:
    """Return what a launcher would have set, where it set less: TF_CONFIG, or torch's own variables."""
    if task.cluster:
        return {"TF_CONFIG": format_tf_config(task.cluster, task.job, task.task_index)}
    if not task.meeting_address:
        return {}
    address = Address.from_endpoint(task.meeting_address)
    return {
        "RANK": str(task.rank),
        "WORLD_SIZE": str(task.size),
        "MASTER_ADDR": address.host,
        "MASTER_PORT": address.port,
    }
