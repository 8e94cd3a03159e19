"""Commands that start a member that is missing, after the example of one that runs, and what shows that it
has not come. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence

import msgspec

from allaboard.configuration import resolve
from allaboard.facts import Address, Evidence, Finding, HostLook, Present

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


def explain_absent_rank(
    finding: Finding, looks: Sequence[HostLook], ranks: Sequence[Present]
) -> Finding:
    """Return a finding on ranks without a process, with what their meeting address shows and the command that
    starts the first of them."""
    if not ranks:
        return finding
    rank = finding.who[0].rank
    evidence = finding.evidence
    address = resolve(ranks[0].stated).meeting_address
    if rank == 0 and address is not None and (host := _host_without_listener(address, looks)):
        shown = Evidence(
            f"nothing listens at {address}, where rank 0 serves, on {host}", "TCP sockets"
        )
        evidence = (shown, *evidence)
    # A rank that expects a smaller world is no example: the missing one would not be in its world.
    example = next((p for p in ranks if resolve(p.stated).world_size > rank), None)
    command = command_for_rank(rank, example) if example is not None else ""
    return msgspec.structs.replace(
        finding, evidence=evidence, fix=f"start rank {rank}: {command}" if command else finding.fix
    )


def _host_without_listener(address: Address, looks: Sequence[HostLook]) -> str:
    """Return the host that was looked at, has this address, and on which nothing listens there; "" for
    none."""
    for look in looks:
        if address.host in look.addresses and not any(
            Address.from_endpoint(a).port == address.port for a in look.listeners
        ):
            return look.host
    return ""
