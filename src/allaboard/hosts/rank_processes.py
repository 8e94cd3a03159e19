"""Processes of this host that are ranks of a job, by the environment that they were started with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from allaboard.facts.configuration.source_variables import CLUSTER_VARIABLES, RANK_VARIABLES
from allaboard.hosts import proc
from allaboard.hosts.agent_alias import attached_pid_of
from allaboard.hosts.current_environment import current_environment
from allaboard.hosts.fingerprint import relevant_variables as that_may_matter

RENDEZVOUS_VARIABLES = (*CLUSTER_VARIABLES, "TORCHELASTIC_RESTART_COUNT", "CUDA_VISIBLE_DEVICES")
"""Variables that say who a process is and where it means to meet the others."""
RAYLET = "raylet"
"""Name of the program that is a node of Ray; seen in Ray 2.60."""
MAX_VALUE_LENGTH = 100_000
"""Characters of a TF_CONFIG that are kept: a thousand tasks."""


def relevant_environment(pid: int) -> dict[str, str]:
    """Return the allowed variables of the environment that the process has now, which its program may have
    set itself."""
    variables = current_environment(pid)
    identity_variables = {
        name: variables[name][:MAX_VALUE_LENGTH]
        for name in RENDEZVOUS_VARIABLES
        if name in variables
    }
    return {**that_may_matter(variables), **identity_variables}


def rank_identity(pid: int) -> tuple[str, ...] | None:
    """Return what the process's environment says of who it is in a job; None if it says nothing.

    All variables count: a worker of torchrun has the SLURM_PROCID of torchrun itself, and a rank beside. An
    agent of ours has the environment of the rank that it watches, and is none.
    """
    variables = proc.initial_environment(pid)
    texts = tuple(f"{n}={variables[n]}" for n in RANK_VARIABLES if n in variables)
    return None if not texts or attached_pid_of(proc.command_line(pid)) else texts


def find_ranks(words: Sequence[str]) -> list[int]:
    """Return the pids of ranks on this host whose command line has one of these words; all ranks
    without words.

    Children of a rank (data loaders) inherit its environment: those whose parent is the same rank
    are left out, and so are launchers' shells, and this process with all above it.
    """
    identities: dict[int, tuple[str, ...]] = {}
    for name in sorted(os.listdir("/proc")):  # noqa: PTH208 - names are enough
        identity_of_process = rank_identity(int(name)) if name.isdecimal() else None
        if identity_of_process is not None:
            identities[int(name)] = identity_of_process
    ancestors = ancestors_of(os.getpid())
    chosen = []
    for pid, identity_of_process in identities.items():
        process_stat, line = proc.read_stat(pid), proc.command_line(pid)
        is_selected = not words or any(word in part for word in words for part in line)
        if (
            process_stat is None
            or process_stat.state == "Z"
            or pid in ancestors
            or not is_selected
            or not is_python(pid, line)
        ):
            continue
        parent = process_stat.ppid
        if identities.get(parent) == identity_of_process and is_python(
            parent, proc.command_line(parent)
        ):
            continue
        chosen.append(pid)
    return sorted(chosen)


def find_raylets() -> list[int]:
    """Return the pids of the raylets on this host that this user may examine.

    A raylet is a node of Ray: the parent of all actors and tasks that run there, which are no children of the
    program that uses them.
    """
    pids = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - names are enough
        if name.isdecimal():
            try:
                program = Path(f"/proc/{name}/exe").readlink().name
            except OSError:
                continue
            if program.removesuffix(" (deleted)") == RAYLET:
                pids.append(int(name))
    return sorted(pids)


def is_python(pid: int, line: Sequence[str]) -> bool:
    """Return True if the process is an interpreter that runs a program, not the shell around it."""
    try:
        program = Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        program = Path(line[0]).name if line else ""
    return program.startswith(("python", "pypy"))


def ancestors_of(pid: int) -> set[int]:
    """Return the pids of the process and of all above it."""
    ancestors: set[int] = set()
    while pid > 1 and pid not in ancestors:
        ancestors.add(pid)
        process_stat = proc.read_stat(pid)
        pid = process_stat.ppid if process_stat is not None else 0
    return ancestors
