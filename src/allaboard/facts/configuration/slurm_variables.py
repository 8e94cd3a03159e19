"""The variables that Slurm sets in a job, and which of them a name was meant to be [sbatch(1), srun(1)]."""

from __future__ import annotations

import re

_NAMES = (
    "ARRAY_JOB_ID", "ARRAY_TASK_COUNT", "ARRAY_TASK_ID", "ARRAY_TASK_MAX", "ARRAY_TASK_MIN",
    "ARRAY_TASK_STEP", "CLUSTER_NAME", "CLUSTERS", "CONF", "CONTAINER", "CONTAINER_ID", "CPUS_ON_NODE",
    "CPUS_PER_GPU", "CPUS_PER_TASK", "CPU_BIND", "CPU_BIND_LIST", "CPU_BIND_TYPE", "CPU_BIND_VERBOSE",
    "CPU_FREQ_REQ", "DEBUG", "DISTRIBUTION", "DIST_PLANESIZE", "DIST_LLLP", "EXPORT_ENV", "GTIDS",
    "GPUS", "GPU_BIND", "GPU_FREQ", "GPUS_ON_NODE", "GPUS_PER_NODE", "GPUS_PER_SOCKET", "GPUS_PER_TASK",
    "HET_SIZE", "HINT", "HOSTFILE", "JOBID", "JOB_ACCOUNT", "JOB_CPUS_PER_NODE", "JOB_DEPENDENCY",
    "JOB_END_TIME", "JOB_GID", "JOB_GPUS", "JOB_GROUP", "JOB_ID", "JOB_LICENSES", "JOB_NAME",
    "JOB_NODELIST", "JOB_NUM_NODES", "JOB_PARTITION", "JOB_QOS", "JOB_RESERVATION", "JOB_START_TIME",
    "JOB_UID", "JOB_USER", "LAUNCH_NODE_IPADDR", "LOCALID", "MEM_BIND", "MEM_PER_CPU", "MEM_PER_GPU",
    "MEM_PER_NODE", "MPI_TYPE", "NETWORK", "NNODES", "NODEID", "NODELIST", "NODE_ALIASES", "NPROCS",
    "NTASKS", "NTASKS_PER_CORE", "NTASKS_PER_GPU", "NTASKS_PER_NODE", "NTASKS_PER_SOCKET", "OVERCOMMIT",
    "OVER_COMMIT", "PRIO_PROCESS", "PROCID", "PROFILE", "PTY_PORT", "PTY_WIN_COL", "PTY_WIN_ROW",
    "RESTART_COUNT", "SHARDS_ON_NODE", "SPANK", "SRUN_COMM_HOST", "SRUN_COMM_PORT", "STEPID",
    "STEP_GPUS", "STEP_ID", "STEP_LAUNCHER_PORT", "STEP_NODELIST", "STEP_NUM_NODES", "STEP_NUM_TASKS",
    "STEP_RESV_PORTS", "STEP_TASKS_PER_NODE", "SUBMIT_DIR", "SUBMIT_HOST", "TASKS_PER_NODE", "TASK_PID",
    "THREADS_PER_CORE", "TMPDIR", "TOPOLOGY_ADDR", "TOPOLOGY_ADDR_PATTERN", "TRES_PER_TASK", "UMASK",
    "VERSION", "WCKEY", "WORKING_CLUSTER",
)  # fmt: skip
SLURM_VARIABLES = frozenset(f"SLURM_{name}" for name in _NAMES)
"""Names of the variables that Slurm sets in batch scripts and steps."""
_MEANT = {
    "SLURM_RANK": "SLURM_PROCID",
    "SLURM_GLOBAL_RANK": "SLURM_PROCID",
    "SLURM_LOCAL_RANK": "SLURM_LOCALID",
    "SLURM_NODE_RANK": "SLURM_NODEID",
    "SLURM_WORLD_SIZE": "SLURM_NTASKS",
    "SLURM_NUM_TASKS": "SLURM_NTASKS",
    "SLURM_NUM_NODES": "SLURM_JOB_NUM_NODES",
}
"""Names of other schedulers and frameworks with Slurm's prefix: Slurm sets none of them."""
_SHORTEST = 11
"""Characters of the shortest name of which a misspelling is looked for; a shorter one is near to many."""


def meant_variable(name: str) -> str:
    """Return the variable of Slurm that a name was meant to be; "" if it is one, or is near to none or
    several."""
    if name in SLURM_VARIABLES or not re.fullmatch(r"S[LRUM]{3,4}_\w+", name):
        return ""
    if name in _MEANT:
        return _MEANT[name]
    if len(name) < _SHORTEST:
        return ""
    letters = name.replace("_", "")
    alike = [v for v in SLURM_VARIABLES if v.replace("_", "") == letters]
    near = alike or [v for v in SLURM_VARIABLES if _is_one_slip(name, v)]
    return near[0] if len(near) == 1 else ""


def _is_one_slip(name: str, variable: str) -> bool:
    """Return True if one letter more, less or other makes the difference, or two letters exchanged."""
    if abs(len(name) - len(variable)) > 1:
        return False
    begin = 0
    while begin < min(len(name), len(variable)) and name[begin] == variable[begin]:
        begin += 1
    a, b = name[begin:], variable[begin:]
    return a[1:] == b or a == b[1:] or a[1:] == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
