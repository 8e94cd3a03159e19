"""Hosts at fault as Slurm names its nodes, for ``--exclude``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from allaboard.formats.slurm_hostlist import HostlistError, expand_hostlist


def slurm_nodes(hosts: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return those of the hosts that are nodes of this Slurm job, by the names of the nodes.

    A host may call itself by its full name (``n7.example.org``) where Slurm knows the short one. Outside of
    Slurm, and for hosts that are not in SLURM_JOB_NODELIST, there is none.
    """
    try:
        nodes = set(expand_hostlist(environment.get("SLURM_JOB_NODELIST", "")))
    except HostlistError:
        return ()
    names = (host if host in nodes else host.partition(".")[0] for host in hosts)
    return tuple(dict.fromkeys(name for name in names if name in nodes))


def exclusion_line(hosts: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the command that submits the job again without these hosts; "" if none is a node of it."""
    nodes = slurm_nodes(hosts, environment)
    if not nodes:
        return ""
    return f"sbatch --exclude={','.join(nodes)} SCRIPT   # the same job, without what is at fault"
