"""What the environment says of a cluster that somebody else starts: that we are in one, and where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from allaboard.analysis.parameter_servers.parameter_servers import AROUND
from allaboard.analysis.roll_call.task_names import ORDER

VARIABLES = ("TF_CONFIG", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
             "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES")  # fmt: skip
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "JAX_PROCESS_ID")
_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "JAX_NUM_PROCESSES")
_JOBS = ("ALLABOARD_JOB_ID", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "PMIX_NAMESPACE",
         "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "CLOUD_ML_JOB_ID", "TRAINING_JOB_NAME")  # fmt: skip


class Described(NamedTuple):
    """The launcher's ``job`` id (empty: it gives none), this task's ``rank`` (-1: not said), the
    ``address`` where all will meet as far as it is known before the script says so, whether the
    launcher's own store (``kept``) holds that port, how many tasks there are (``size``; 0: not
    said), and what this task is where it stands ``beside`` the cluster ("evaluator:0")."""

    job: str
    rank: int
    address: str
    kept: bool
    size: int = 0
    beside: str = ""


def described(environment: Mapping[str, str]) -> Described | None:
    """None where the environment describes no cluster."""
    if not any(name in environment for name in VARIABLES):
        return None
    kept = environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    cluster, rank, beside = _tf_config(environment.get("TF_CONFIG", ""))
    if rank < 0:
        texts = (environment.get(name, "") for name in _RANKS)
        rank = next((int(t) for t in texts if t.isdigit()), -1)
    address = cluster[0] if cluster else ""
    if not kept:
        address = address or master(environment)
    address = address or _coordinator(environment)
    sizes = (environment.get(name, "") for name in _SIZES)
    size = len(cluster) or next((int(t) for t in sizes if t.isdigit()), 0)
    return Described(job_id(environment), rank, address, kept, size, beside)


def master(environment: Mapping[str, str]) -> str:
    """host:port of torch's own variables, where the launcher's store is if it keeps one; "" without them."""
    host, port = environment.get("MASTER_ADDR", ""), environment.get("MASTER_PORT", "")
    if not host or not port.isdigit():
        return ""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _coordinator(environment: Mapping[str, str]) -> str:
    """host:port of JAX's own variable, which `jax.distributed.initialize` reads; "" without it."""
    address = environment.get("JAX_COORDINATOR_ADDRESS", "")
    host, _, port = address.rpartition(":")
    return address if host and port.isdigit() else ""


def job_id(environment: Mapping[str, str]) -> str:
    """What tells two jobs apart: an id that every member of a job shares and no other job has."""
    for name in _JOBS:
        value = environment.get(name, "")
        if value and value != "none":  # torchrun's id where none was given
            step = environment.get("SLURM_STEP_ID", "") if name == "SLURM_JOB_ID" else ""
            return f"{name}={value}" + (f".{step}" if step else "")
    return ""


def job_of(environment: Mapping[str, str], ours: str) -> str:
    """The same of a process that may be of another job than ``ours``; "" too where it is of another step of
    the same allocation, which may be an earlier run or another job."""
    found = job_id(environment)
    apart = found.partition(".")[0] != ours.partition(".")[0]
    return found if apart or found == ours or not found.startswith("SLURM_JOB_ID=") else ""


def _tf_config(text: str) -> tuple[list[str], int, str]:
    """The tasks' addresses in TensorFlow's order, chief first and servers last, our place, and our task where
    it is beside them."""
    try:
        told = json.loads(text) if text else {}
        cluster, task = told["cluster"], told["task"]
        order = [(j, i) for j in ORDER for i in range(len(cluster.get(j, ())))]
        addresses = [str(cluster[j][i]) for j, i in order]
        mine = (task["type"], int(task["index"]))
        beside = f"{mine[0]}:{mine[1]}" if mine[0] in AROUND and mine[1] >= 0 else ""
        return addresses, order.index(mine) if mine in order else -1, beside
    except (ValueError, KeyError, TypeError, RecursionError):
        return [], -1, ""
