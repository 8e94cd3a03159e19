"""Which processes of this host are ranks of a job, by the environment that they were started with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from allaboard.facts.configuration.source_variables import CLUSTER_VARIABLES, RANK_VARIABLES
from allaboard.hosts import proc
from allaboard.hosts.fingerprint import relevant_variables as that_may_matter

MEETING = (*CLUSTER_VARIABLES, "TORCHELASTIC_RESTART_COUNT", "CUDA_VISIBLE_DEVICES")
"""Variables that say who a process is and where it means to meet the others."""
LONG = 100_000
"""Characters of a TF_CONFIG that are kept: a thousand tasks."""


def environment(pid: int) -> dict[str, str]:
    """The allowed variables of the environment that it was started with; what a program set later by
    itself is not seen."""
    known = proc.environment(pid)
    own = {name: known[name][:LONG] for name in MEETING if name in known}
    return {**that_may_matter(known), **own}


def identity(pid: int) -> tuple[str, ...] | None:
    """Return what the process's environment says of who it is in a job; None if it says nothing.

    All variables count: a worker of torchrun has the SLURM_PROCID of torchrun itself, and a rank beside.
    """
    variables = proc.environment(pid)
    texts = tuple(f"{n}={variables[n]}" for n in RANK_VARIABLES if n in variables)
    return texts or None


def find(words: Sequence[str]) -> list[int]:
    """The ranks on this host whose command line has one of these words; all of them without words.

    Children of a rank (data loaders) inherit its environment: those whose parent is the same rank
    are left out, and so are launchers' shells and this very process with all above it.
    """
    found: dict[int, tuple[str, ...]] = {}
    for name in sorted(os.listdir("/proc")):  # noqa: PTH208 - names are enough
        told = identity(int(name)) if name.isdigit() else None
        if told is not None:
            found[int(name)] = told
    above = _above(os.getpid())
    chosen = []
    for pid, told in found.items():
        seen, line = proc.read_stat(pid), proc.command_line(pid)
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
        seen = proc.read_stat(pid)
        pid = seen.ppid if seen is not None else 0
    return found
