"""Expressions that number a process on its host alone, and those that count all ranks of a job."""

from __future__ import annotations

import ast
import re

from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script

_LOCAL_VARIABLES = ("SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK")
"""Variables of launchers for several hosts: the number of a process on its host."""
_LOCAL = re.compile(
    r"(?:\w+\.)*(?:local_rank\(\)|get_local_rank\(\)|local_process_index)"
    rf"|.*\[?\(?['\"](?:LOCAL_RANK|{'|'.join(_LOCAL_VARIABLES)})['\"].*"
)
_GLOBAL = re.compile(
    r"(?:\w+\.)*get_rank\(\)|os\.(?:environ\[|environ\.get\(|getenv\()"
    r"['\"](?:RANK|SLURM_PROCID|OMPI_COMM_WORLD_RANK)['\"].*"
)
_WORLD = re.compile(
    r"hvd\.size\(\)|(?:\w+\.)*get_world_size\(\)|jax\.process_count\(\)"
    r"|.*['\"](?:WORLD_SIZE|SLURM_NTASKS|SLURM_NPROCS|OMPI_COMM_WORLD_SIZE|MV2_COMM_WORLD_SIZE)['\"].*"
)


def is_number_on_host(script: Script, node: ast.expr) -> bool:
    """Return True if an expression is the number of a process on its host."""
    return _LOCAL.fullmatch(_text(script, node)) is not None


def is_of_a_cluster(script: Script, node: ast.expr) -> bool:
    """Return True if an expression reads the number on the host from a launcher for several hosts."""
    return any(name in _text(script, node) for name in _LOCAL_VARIABLES)


def is_number_of_ranks(script: Script, node: ast.expr) -> bool:
    """Return True if an expression is the number of ranks of the whole job."""
    return _WORLD.fullmatch(_text(script, node)) is not None


def is_rank_among_hosts(script: Script, node: ast.expr) -> bool:
    """Return True if an expression is the rank of a process among all hosts."""
    return _GLOBAL.fullmatch(_text(script, node)) is not None


def _text(script: Script, node: ast.expr) -> str:
    """Return the text of what an expression is made from, without `int(…)`."""
    value = resolve(script, node)
    if isinstance(value, ast.Attribute):
        value = script.ranks.sole_value(value) or value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "int":
        value = resolve(script, value.args[0]) if value.args else value
    return ast.unparse(value)
