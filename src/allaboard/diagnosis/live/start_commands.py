"""Commands that start a member that is missing, after the example of one that runs. Pure."""

from __future__ import annotations

import json
import re
import shlex

from allaboard.facts import Present

_RANK_FLAG = re.compile(r"((?<!\S)--?(?:global[-_]|world[-_])?(?:rank|process_id)[= ])\d+(?!\S)")
_JOB_FLAG = re.compile(r"((?<!\S)--?(?:job_name|task_type|job)[= ])\w+")
_INDEX_FLAG = re.compile(r"((?<!\S)--?(?:task_index|task_id|task|index)[= ])\d+")
_LAUNCHED = ("TORCHELASTIC_RUN_ID", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
"""Variables of launchers: no member of such a job is started by hand."""


def command_for_task(task: str, example: Present) -> str:
    """Return the command that starts this task (``ps:1``) of a TensorFlow cluster; "" if it cannot be
    told."""
    job, _, index = task.partition(":")
    if not task or not example.command:
        return ""
    command = shlex.join(example.command)
    if "TF_CONFIG" in example.arguments:  # made from flags
        return _INDEX_FLAG.sub(rf"\g<1>{index}", _JOB_FLAG.sub(rf"\g<1>{job}", command))
    if "TF_CONFIG" in example.set_by_program:
        return ""
    try:
        config = json.loads(example.variables["TF_CONFIG"])
        config["task"] = {"type": job, "index": int(index)}
    except (KeyError, ValueError, TypeError):
        return ""
    return f"TF_CONFIG={shlex.quote(json.dumps(config))} {command}"


def command_for_rank(rank: int, example: Present) -> str:
    """Return the command that starts this rank; "" if a launcher starts all ranks, or it cannot be told."""
    variables, command = example.variables, shlex.join(example.command)
    if any(name in variables for name in _LAUNCHED) or not command or "spawn_main" in command:
        return ""
    for names in (
        ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
        ("JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "JAX_COORDINATOR_ADDRESS"),
    ):
        if names[0] in variables and names[0] not in example.set_by_program:
            stated = {n: variables[n] for n in names if n in variables} | {names[0]: str(rank)}
            return " ".join([*(f"{n}={shlex.quote(v)}" for n, v in stated.items()), command])
    return _RANK_FLAG.sub(rf"\g<1>{rank}", command) if _RANK_FLAG.search(command) else ""
