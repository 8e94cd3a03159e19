"""A rendezvous address that each task of a step chooses for itself: ``srun bash -c '… $(hostname)
…'``."""

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
_ADDRESS_CHOICE = re.compile(
    rf"(?P<name>\bMASTER_ADDR=|--master[-_]addr[= ]|--rdzv[-_]endpoint[= ])[\"']?(?P<value>{_HOST})"
)
_PORT_CHOICE = re.compile(
    r"(?P<name>\bMASTER_PORT=|--master[-_]port[= ]|--rdzv[-_]endpoint[= ]\S+?:)[\"']?"
    rf"(?P<value>[0-9]*{_CHANCE})"
)
_CONDITION = re.compile(r"\b(?:if|case|test)\b|\[\s")
"""A condition, by which one node may act differently from the others."""
_TORCHRUN = re.compile(r"(?:^|[\s/;&|])torchrun\s|\btorch\.distributed\.(?:run|launch)\s")
_SEVERAL_NODES = re.compile(r"--nnodes[= ][\"']?(?!1[\s\"']|1\Z)\S")
_RANK_SETTING = re.compile(
    r"\bRANK=[\"']?\$\{?SLURM_PROCID\b|\bWORLD_SIZE=[\"']?\$\{?SLURM_NTASKS\b"
)
"""An assignment that makes a PyTorch program one rank of all tasks of the step."""


_CORRECTIONS = {
    "place": 'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)   # before '
    "srun, and $MASTER_ADDR in the step",
    "port": "export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))   # before srun, and $MASTER_PORT in the "
    "step",
}


class PerTaskChoice(NamedTuple):
    """One setting of the rendezvous that each task chooses for itself."""

    setting: str
    """Name of the variable, or the flag with its dashes."""
    value: str
    """Text of the script by which the value is chosen."""
    is_port: bool
    """True for the port, False for the address."""

    @property
    def correction(self) -> str:
        """The line that should stand before the step."""
        return _CORRECTIONS["port" if self.is_port else "place"]


def find_per_task_choices(step_text: str) -> Iterator[PerTaskChoice]:
    """Yield the rendezvous settings that this text, which a shell runs once in each task, chooses
    for all tasks.

    Nothing is yielded if the tasks do not join one process group, or if the text contains a
    condition.
    """
    if _CONDITION.search(step_text):
        return
    is_torchrun = _TORCHRUN.search(step_text) is not None
    if not (_SEVERAL_NODES if is_torchrun else _RANK_SETTING).search(step_text):
        return
    for pattern in (_ADDRESS_CHOICE, _PORT_CHOICE):
        for match in pattern.finditer(step_text):
            name = match["name"].rstrip("= ")
            if (
                is_torchrun
                and not name.startswith("--")
                and not _is_passed_to_torchrun(step_text, name)
            ):
                continue  # torchrun asks its flags alone
            yield PerTaskChoice(_setting_name(name), match["value"], pattern is _PORT_CHOICE)


def _setting_name(name: str) -> str:
    return re.split(r"[= ]", name)[0]


def _is_passed_to_torchrun(step_text: str, name: str) -> bool:
    """Return True if a flag of torchrun takes its value from the variable."""
    return re.search(rf"--(?:master|rdzv)[-_]\w+[= ]\S*\$\{{?{name}\b", step_text) is not None


def read_step_size(
    values: Mapping[str, Value], batch_options: Mapping[str, Value]
) -> tuple[int, int]:
    """Return the number of nodes and of tasks that a step certainly has, from the options of srun
    and of the ``#SBATCH`` lines; 0 if only a run could tell."""

    def requested(*names: str) -> int | None:
        candidates = [values[n] for n in names if n in values]
        option_names = (f"-{n}" if len(n) == 1 else f"--{n.replace('_', '-')}" for n in names)
        candidates += [batch_options[n] for n in option_names if n in batch_options]
        return (candidates[0].integer or 0) if candidates else None

    nodes, per_node, tasks = (
        requested("nodes", "N"),
        requested("ntasks_per_node"),
        requested("ntasks", "n"),
    )
    nodes = 1 if nodes is None else nodes
    total = nodes * (1 if per_node is None else per_node) if tasks is None else tasks
    return min(nodes, total), total
