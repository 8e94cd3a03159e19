"""The member at whose address all others meet: its name, and the command that starts it."""

from __future__ import annotations

import json
import shlex

from allaboard.analysis.roll_call.task_names import who_has_rank
from allaboard.facts import Address, Declared, Who

MAX_SPELLED_TASKS = 8
"""Tasks up to which the TF_CONFIG of the first one is spelled out."""
_RANK_WORDS = {"jax": "process"}
"""What a framework calls its ranks; "rank" if nothing else."""


def who_is_first(declared: Declared) -> Who:
    """Return the first member, of which no process was seen."""
    return who_has_rank(declared, 0)


def first_member_name(declared: Declared, address: str) -> str:
    """Return "worker 0 (h0:2222)", "rank 0 (h0:29500)" or "process 0 (h0:29500)"."""
    if declared.cluster:
        task = who_is_first(declared)
        return f"{task.job} {task.index} ({address})"
    return f"{_RANK_WORDS.get(declared.framework, 'rank')} 0 ({address})"


def start_advice(declared: Declared, address: str) -> str:
    """Return how the first member is started on its host, as a command if its variables are known."""
    variables = _variables(declared, address)
    if not variables:
        return "start it there with this host's command and rank 0"
    assignments = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    return f"{assignments} allaboard run SCRIPT   # this host's command, as the first member"


def _variables(declared: Declared, address: str) -> dict[str, str]:
    """Return the variables of the first member; none where its arguments are the script's own."""
    if declared.cluster:
        return _tf_config(declared) if "TF_CONFIG" in declared.origin else {}
    size = str(declared.world_size)
    if "JAX_" in declared.origin:
        return {
            "JAX_COORDINATOR_ADDRESS": address,
            "JAX_NUM_PROCESSES": size,
            "JAX_PROCESS_ID": "0",
        }
    if not declared.origin.startswith("RANK"):
        return {}
    variables = {"RANK": "0", "WORLD_SIZE": size}
    if "MASTER_ADDR" in declared.origin:
        parts = Address.from_endpoint(address)
        variables |= {"MASTER_ADDR": parts.host, "MASTER_PORT": parts.port}
    return variables


def _tf_config(declared: Declared) -> dict[str, str]:
    if len(declared.cluster) > MAX_SPELLED_TASKS:
        return {}
    cluster: dict[str, list[str]] = {}
    for task, address in declared.cluster.items():
        cluster.setdefault(task.partition(":")[0], []).append(address)
    first_task = who_is_first(declared)
    config = {"cluster": cluster, "task": {"type": first_task.job, "index": first_task.index}}
    return {"TF_CONFIG": json.dumps(config)}
