"""Which processes of this host are ranks of a job, by the environment that they were started with."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from allaboard.hosts import proc
from allaboard.hosts.fingerprint import variables as that_may_matter

IDENTITY = (
    "RANK",
    "TF_CONFIG",
    "JAX_PROCESS_ID",
    "SLURM_PROCID",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
)
MEETING = (*IDENTITY, "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK",
           "MASTER_ADDR", "MASTER_PORT", "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES",
           "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID", "SLURM_NTASKS",
           "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_NODELIST", "OMPI_COMM_WORLD_SIZE",
           "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_SIZE", "PMIX_RANK", "CUDA_VISIBLE_DEVICES")  # fmt: skip
"""Variables that say who a process is and where it means to meet the others."""
LONG = 100_000
"""Characters of a TF_CONFIG that are kept: a thousand tasks."""


def environment(pid: int) -> dict[str, str]:
    """The allowed variables of the environment that it was started with; what a program set later by
    itself is not seen."""
    known = proc.environment(pid)
    own = {name: known[name][:LONG] for name in MEETING if name in known}
    return {**that_may_matter(known), **own}


def identity(pid: int) -> str | None:
    """What the process's environment says of who it is in a job; None where it says nothing."""
    return next((v for n in IDENTITY if (v := proc.variable(pid, n)) is not None), None)


def rank(variables: Mapping[str, str]) -> int:
    """Its rank, or its index in TF_CONFIG; -1 where it is not said."""
    text = next((variables[n] for n in IDENTITY if n in variables), "")
    if text.isdigit():
        return int(text)
    try:
        return int(msgspec.json.decode(text)["task"]["index"])
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
        RecursionError,
        KeyError,
        TypeError,
        ValueError,
    ):
        return -1


def find(words: Sequence[str]) -> list[int]:
    """The ranks on this host whose command line has one of these words; all of them without words.

    Children of a rank (data loaders) inherit its environment: those whose parent is the same rank
    are left out, and so are launchers' shells and this very process with all above it.
    """
    found: dict[int, str] = {}
    for name in sorted(os.listdir("/proc")):  # noqa: PTH208 - names are enough
        told = identity(int(name)) if name.isdigit() else None
        if told is not None:
            found[int(name)] = told
    above = _above(os.getpid())
    chosen = []
    for pid, told in found.items():
        seen, line = proc.stat(pid), proc.command_line(pid)
        wanted = not words or any(word in part for word in words for part in line)
        if seen is None or seen.state == "Z" or pid in above or not wanted or not python(pid, line):
            continue
        parent = seen.ppid
        if found.get(parent) == told and python(parent, proc.command_line(parent)):
            continue
        chosen.append(pid)
    return sorted(chosen)


def python(pid: int, line: Sequence[str]) -> bool:
    """Whether it is an interpreter that runs a program, not the shell around it."""
    try:
        program = Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        program = Path(line[0]).name if line else ""
    return program.startswith(("python", "pypy"))


def _above(pid: int) -> set[int]:
    found: set[int] = set()
    while pid > 1 and pid not in found:
        found.add(pid)
        seen = proc.stat(pid)
        pid = seen.ppid if seen is not None else 0
    return found
