"""What one step of a Slurm job asks for: the options of srun, and of sbatch where srun has none.

sbatch exports its options to the batch script (SLURM_NNODES, SLURM_NTASKS, SLURM_NTASKS_PER_NODE,
SLURM_GPUS_PER_TASK, …), from where srun takes them as its defaults (srun(1), INPUT ENVIRONMENT VARIABLES).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from allaboard.facts import Value, whole_number

_GPU_COUNT = re.compile(
    r"(?:gres[/:])?gpu(?:[:=](?P<kind>[A-Za-z][\w.-]*))?(?:[:=](?P<count>\d+))?(?:\(S:[\d,-]+\))?\Z"
)
_NODE_OPTIONS = frozenset(
    ("nodes", "N", "nodelist", "w", "exclude", "x", "relative", "r", "nodefile", "F", "het_group")
)
"""Options by which a step may have other nodes than its allocation."""
_TASK_OPTIONS = frozenset(("ntasks", "n", "ntasks_per_node", "tasks_per_node"))


class StepRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes, tasks and GPUs of one step; None for what is not said, or only a run could tell."""

    nodes: Value | None = None
    """Number of nodes; of a range, the value as written."""
    tasks: Value | None = None
    """Number of tasks on all nodes together."""
    tasks_per_node: Value | None = None
    """Number of tasks on each node."""
    gpus_per_node: Value | None = None
    """Option that asks for GPUs by the node."""
    all_gpus: Value | None = None
    """Option that asks for GPUs on all nodes together."""
    gpus_per_task: Value | None = None
    """Option that gives each task GPUs of its own."""
    is_gpu_bound: bool = False
    """True if --gpu-bind decides which GPUs a task sees."""
    is_job_known: bool = True
    """False if the script has no ``#SBATCH`` lines: the job may be an interactive one of any size."""
    is_certain: bool = True
    """False if the step may have other nodes than its allocation, or if an option has a value that only a run
    could tell."""

    @property
    def node_count(self) -> int | None:
        """Number of nodes that the step surely has; None if it is not known."""
        if self.nodes is not None:
            return Value(self.nodes.text.partition("-")[0]).integer
        return 1 if self.tasks is None and self.is_job_known else None

    @property
    def tasks_on_node(self) -> int | None:
        """Number of tasks on each node; None if it is not known."""
        if self.tasks is None and self.tasks_per_node is not None:
            return self.tasks_per_node.integer
        if self.tasks is None:
            return 1 if self.is_job_known else None
        total, nodes = self.tasks.integer, self.node_count
        if total is None or not nodes or total % nodes:
            return None
        return total // nodes

    @property
    def total_tasks(self) -> int | None:
        """Number of tasks; None if it is not known."""
        if self.tasks is not None:
            return self.tasks.integer
        nodes, each = self.node_count, self.tasks_on_node
        return nodes * each if nodes is not None and each is not None else None

    @property
    def tasks_value(self) -> Value | None:
        """The option that decides how many tasks there are."""
        return self.tasks or self.tasks_per_node or self.nodes

    @property
    def gpu_count(self) -> int | None:
        """Number of GPUs of each node; None if it is not said."""
        return _gpus(self.gpus_per_node.text) if self.gpus_per_node is not None else None

    @property
    def even_gpu_count(self) -> int | None:
        """Number of GPUs of each node, if the job's are spread evenly; None if it is not said."""
        if self.gpu_count is not None or self.all_gpus is None:
            return self.gpu_count
        total, nodes = _gpus(self.all_gpus.text), self.node_count
        return total // nodes if total and nodes and total % nodes == 0 else None


def _gpus(text: str) -> int | None:
    """Return the GPUs of ``gpu:a100:4``, ``a100:4`` or ``4``; None if the text asks for none or cannot be
    read."""
    total = 0
    for part in text.split(","):
        number = (
            whole_number(part.rpartition(":")[2]) if not part.startswith(("gpu", "gres")) else None
        )
        if number is not None:
            total += number
            continue
        match = _GPU_COUNT.fullmatch(part)
        total += int(match["count"] or 1) if match else 0
    return total or None


def read_request(options: Mapping[str, Value], batch_lines: Mapping[str, Value]) -> StepRequest:
    """Return the request of a step from srun's options by name, and sbatch's with their dashes; without
    options it is that of the whole job."""

    def option(*names: str) -> Value | None:
        return next((options[n] for n in names if n in options), None)

    def line(*names: str) -> Value | None:
        return next((batch_lines[n] for n in names if n in batch_lines), None)

    def either(*names: str) -> Value | None:
        dashed = (f"-{n}" if len(n) == 1 else f"--{n.replace('_', '-')}" for n in names)
        return option(*names) or line(*dashed)

    tasks_named = bool(_TASK_OPTIONS & options.keys())
    gpus_per_node = either("gpus_per_node") or _gres(either("gres"))
    return StepRequest(
        nodes=either("nodes", "N"),
        tasks=option("ntasks", "n") or (None if tasks_named else line("--ntasks", "-n")),
        tasks_per_node=option("ntasks_per_node", "tasks_per_node")
        or (None if tasks_named else line("--ntasks-per-node", "--tasks-per-node")),
        gpus_per_node=gpus_per_node,
        all_gpus=either("gpus", "G"),
        gpus_per_task=either("gpus_per_task"),
        is_job_known=bool(batch_lines),
        is_gpu_bound=either("gpu_bind", "tres_bind") is not None,
        is_certain=not (options.keys() & (_NODE_OPTIONS - {"nodes", "N"}))
        and all(v.text for n, v in options.items() if n in _TASK_OPTIONS | {"nodes", "N"}),
    )


def _gres(value: Value | None) -> Value | None:
    """Return the value if it asks for GPUs."""
    return value if value is not None and "gpu" in value.text else None
