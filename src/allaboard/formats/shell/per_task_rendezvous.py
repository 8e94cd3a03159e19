"""The meeting place that each task of a step chooses by itself: ``srun bash -c '… $(hostname) …'``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from allaboard.facts import Value

_HOST = (
    r"(?:\$\(\s*hostname\b[^)]*\)|`\s*hostname\b[^`]*`|\$\(\s*uname -n\s*\)"
    r"|\$\{?(?:HOSTNAME|SLURMD_NODENAME)\b\}?)"
)
_CHANCE = r"(?:\$\(\([^)]*\bRANDOM\b[^)]*\)\)|\$\{?RANDOM\b\}?|\$\(\s*shuf\b[^)]*\)|\$\$)"
_PLACE = re.compile(
    rf"(?P<name>\bMASTER_ADDR=|--master[-_]addr[= ]|--rdzv[-_]endpoint[= ])[\"']?(?P<value>{_HOST})"
)
_PORT = re.compile(
    r"(?P<name>\bMASTER_PORT=|--master[-_]port[= ]|--rdzv[-_]endpoint[= ]\S+?:)[\"']?"
    rf"(?P<value>[0-9]*{_CHANCE})"
)
_CHOOSES = re.compile(r"\b(?:if|case|test)\b|\[\s")
"""A condition, by which one node may do something else than the others."""
_TORCHRUN = re.compile(r"(?:^|[\s/;&|])torchrun\s|\btorch\.distributed\.(?:run|launch)\s")
_NODES = re.compile(r"--nnodes[= ][\"']?(?!1[\s\"']|1\Z)\S")
_MEETS = re.compile(r"\bRANK=[\"']?\$\{?SLURM_PROCID\b|\bWORLD_SIZE=[\"']?\$\{?SLURM_NTASKS\b")
"""What tells a Python program of PyTorch that it is one of all tasks of the step."""


_BEFORE = {
    "place": 'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)   # before '
    "srun, and $MASTER_ADDR in the step",
    "port": "export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))   # before srun, and $MASTER_PORT in the "
    "step",
}


class Chosen(NamedTuple):
    """``what`` is chosen (a variable, a flag), and by what text (``value``); ``port``: it is the port."""

    what: str
    value: str
    port: bool

    @property
    def correction(self) -> str:
        """What is to stand before the step."""
        return _BEFORE["port" if self.port else "place"]


def by_each(step: str) -> Iterator[Chosen]:
    """What the text of this shell, which runs once in each task, chooses for all that meet; nothing where
    they meet nobody, or where it depends on a condition."""
    if _CHOOSES.search(step):
        return
    flags = _TORCHRUN.search(step) is not None
    if not (_NODES if flags else _MEETS).search(step):
        return
    for pattern in (_PLACE, _PORT):
        for found in pattern.finditer(step):
            name = found["name"].rstrip("= ")
            if flags and not name.startswith("--") and not _handed(step, name):
                continue  # torchrun asks its flags alone
            yield Chosen(_short(name), found["value"], pattern is _PORT)


def _short(name: str) -> str:
    return re.split(r"[= ]", name)[0]


def _handed(step: str, name: str) -> bool:
    """Whether the variable is what torchrun's flags are given."""
    return re.search(rf"--(?:master|rdzv)[-_]\w+[= ]\S*\$\{{?{name}\b", step) is not None


def size_of(values: Mapping[str, Value], lines: Mapping[str, Value]) -> tuple[int, int]:
    """How many nodes and tasks a step surely has, by srun's options and those of the ``#SBATCH`` lines; 0
    where only a run could tell."""

    def asked(*names: str) -> int | None:
        given = [values[n] for n in names if n in values]
        long = (f"-{n}" if len(n) == 1 else f"--{n.replace('_', '-')}" for n in names)
        given += [lines[n] for n in long if n in lines]
        return (given[0].integer or 0) if given else None

    nodes, each, tasks = asked("nodes", "N"), asked("ntasks_per_node"), asked("ntasks", "n")
    nodes = 1 if nodes is None else nodes
    total = nodes * (1 if each is None else each) if tasks is None else tasks
    return min(nodes, total), total
