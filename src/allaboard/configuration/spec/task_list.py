"""The tasks of a spec, one by one, whatever source it came from."""

from __future__ import annotations

import msgspec

from allaboard.facts import PartialSpec, address, whole_number
from allaboard.facts.configuration.cluster import AUXILIARY_JOBS, TASK_ORDER

PORT = 29500
"""PyTorch's default master port; used where a source names hosts without ports."""

MOST = 200_000
"""Tasks that are listed; the largest jobs of the field have a tenth of it."""

_ORDER = (*TASK_ORDER, *AUXILIARY_JOBS)


class Task(msgspec.Struct, frozen=True):
    """One process of the job."""

    job: str
    """Its job."""
    index: int
    """Its index within the job."""
    rank: int
    """Its number in the whole job."""
    host: str
    """Its host."""
    port: int
    """Its port on that host."""
    slot: int
    """Its number on that host."""


def list_tasks(spec: PartialSpec) -> list[Task]:
    """Return every task of the spec in rank order: chief, workers, parameter servers, evaluator.

    From the listed cluster where there is one, else from the machines and their slots: a host's
    n-th process gets port n above MASTER_PORT, or above 29500 if that is not set.

    Raises:
        ValueError: the spec names neither tasks nor machines, or too many of them, or the ports
            of a host's tasks run past 65535.
    """
    base = spec.number("master_port") or PORT
    if spec.cluster:
        return _listed(spec, base)
    if not spec.machines:
        raise ValueError(
            "no host list in the configuration (TF_CONFIG, a hostfile, a Slurm node list or a "
            "manifest would have one); give it: --hosts node0,node1"
        )
    each = spec.number("nproc_per_node") or 1
    if sum(m.slots or each for m in spec.machines) > MOST:
        raise ValueError(f"more than {MOST} processes: look at the slots")
    most = max(m.slots or each for m in spec.machines)
    if base + most > 65536:
        raise ValueError(f"{most} processes on a host from port {base} on run past port 65535")
    task_list: list[Task] = []
    for machine in spec.machines:
        for slot in range(machine.slots or each):
            rank = len(task_list)
            task_list.append(Task("worker", rank, rank, machine.name.text, base + slot, slot))
    return task_list


def _listed(spec: PartialSpec, base: int) -> list[Task]:
    jobs = sorted(spec.cluster, key=lambda j: _ORDER.index(j) if j in _ORDER else len(_ORDER))
    task_list: list[Task] = []
    last_slot: dict[str, int] = {}
    for job in jobs:
        for index, value in enumerate(spec.cluster[job]):
            host, text = address.parse_address(value.text)[:2]
            number = whole_number(text) or base
            slot = last_slot[host] = last_slot.get(host, -1) + 1
            task_list.append(Task(job, index, len(task_list), host, number, slot))
    return task_list


def meeting_host_and_port(spec: PartialSpec, task_list: list[Task]) -> tuple[str, int]:
    """Return where the members meet: MASTER_ADDR and MASTER_PORT, else the first task's address."""
    first_task = task_list[0]
    named = spec.values.get("master_addr")
    return (
        named.text.strip() if named and named.text.strip() else first_task.host,
        spec.number("master_port") or first_task.port,
    )
