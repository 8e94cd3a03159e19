"""Which environment variables each source of configuration reads: the one table of them.

The readers in ``configuration/sources`` take their fields from here, and so does whatever must recognise a
process of a job by its environment: process discovery, the roll call, reports. The order is the order of
precedence among statements of one kind; `allaboard.configuration.resolve` explains it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class SourceVariables(NamedTuple):
    """The variables of one source."""

    fields: Mapping[str, tuple[str, ...]] = {}
    """Field of the spec to the variables that give it; the first one that is set and not blank counts."""
    structured: tuple[str, ...] = ()
    """Variables that hold more than one field, or only change what the others mean."""
    identity: tuple[str, ...] = ()
    """Variables that only a process of a job has: if one is set, somebody else starts the other ranks."""

    @property
    def names(self) -> Iterator[str]:
        """Every variable that the source reads."""
        for names in self.fields.values():
            yield from names
        yield from self.structured


SOURCE_VARIABLES: Mapping[str, SourceVariables] = {
    "tf_config": SourceVariables({}, ("TF_CONFIG",), ("TF_CONFIG",)),
    "jax": SourceVariables(
        {
            "coordinator": ("JAX_COORDINATOR_ADDRESS",),
            "world_size": ("JAX_NUM_PROCESSES",),
            "rank": ("JAX_PROCESS_ID",),
        },
        ("OMPI_MCA_orte_hnp_uri", "SLURM_JOB_ID", "SLURM_STEP_NODELIST"),
        ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES"),
    ),
    "torch_env": SourceVariables(
        {
            "rank": ("RANK",),
            "world_size": ("WORLD_SIZE",),
            "local_rank": ("LOCAL_RANK",),
            "local_world_size": ("LOCAL_WORLD_SIZE",),
            "node_rank": ("GROUP_RANK", "NODE_RANK"),
            "master_addr": ("MASTER_ADDR",),
            "master_port": ("MASTER_PORT",),
            "elastic": ("TORCHELASTIC_RUN_ID",),
        },
        (),
        ("WORLD_SIZE",),
    ),
    "mpi": SourceVariables(
        {
            "rank": ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"),
            "world_size": ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"),
            "local_rank": ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"),
            "local_world_size": ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"),
        },
        ("TORCHELASTIC_RUN_ID", "SLURM_PROCID"),
        ("OMPI_COMM_WORLD_RANK", "PMI_RANK"),
    ),
    "mvapich2": SourceVariables(
        {
            "rank": ("MV2_COMM_WORLD_RANK",),
            "world_size": ("MV2_COMM_WORLD_SIZE",),
            "local_rank": ("MV2_COMM_WORLD_LOCAL_RANK",),
            "local_world_size": ("MV2_COMM_WORLD_LOCAL_SIZE",),
        },
        ("TORCHELASTIC_RUN_ID",),
        ("MV2_COMM_WORLD_RANK",),
    ),
    "init_url": SourceVariables({}, ("INIT_METHOD", "DIST_URL", "DIST_INIT_METHOD")),
    "torchrun": SourceVariables(
        {
            "nnodes": ("PET_NNODES",),
            "nproc_per_node": ("PET_NPROC_PER_NODE",),
            "node_rank": ("PET_NODE_RANK",),
            "master_addr": ("PET_MASTER_ADDR",),
            "master_port": ("PET_MASTER_PORT",),
            "rdzv_backend": ("PET_RDZV_BACKEND",),
            "rdzv_endpoint": ("PET_RDZV_ENDPOINT",),
            "rdzv_id": ("PET_RDZV_ID",),
            "standalone": ("PET_STANDALONE",),
        },
        ("TORCHELASTIC_RUN_ID", "RANK"),
    ),
    "pals": SourceVariables(
        {
            "rank": ("PALS_RANKID",),
            "local_rank": ("PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"),
            "local_world_size": ("PMI_LOCAL_SIZE",),
            "node_rank": ("PALS_NODEID",),
        },
        (),
        ("PALS_RANKID",),
    ),
    "flux": SourceVariables(
        {
            "rank": ("FLUX_TASK_RANK",),
            "world_size": ("FLUX_JOB_SIZE",),
            "local_rank": ("FLUX_TASK_LOCAL_ID",),
            "nnodes": ("FLUX_JOB_NNODES",),
        },
        (),
        ("FLUX_TASK_RANK",),
    ),
    "lsf": SourceVariables(
        {
            "rank": ("JSM_NAMESPACE_RANK",),
            "world_size": ("JSM_NAMESPACE_SIZE",),
            "local_rank": ("JSM_NAMESPACE_LOCAL_RANK",),
            "local_world_size": ("JSM_NAMESPACE_LOCAL_SIZE",),
        },
        ("LSB_MCPU_HOSTS", "LSB_HOSTS"),
        ("JSM_NAMESPACE_RANK",),
    ),
    "slurm": SourceVariables(
        {
            "rank": ("SLURM_PROCID",),
            "local_rank": ("SLURM_LOCALID",),
            "node_rank": ("SLURM_NODEID",),
            "world_size": ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"),
            "nnodes": ("SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
            "tasks_per_node": ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"),
            "node_list": ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"),
        },
        (),
        ("SLURM_PROCID",),
    ),
    "pbs": SourceVariables(
        {"node_rank": ("PBS_NODENUM",), "nnodes": ("PBS_NUM_NODES",)}, ("PBS_NODEFILE",)
    ),
    "sagemaker": SourceVariables(
        {
            "master_addr": ("SM_MASTER_ADDR",),
            "master_port": ("SM_MASTER_PORT",),
            "nproc_per_node": ("SM_NUM_GPUS",),
        },
        ("SM_HOSTS", "SM_CURRENT_HOST"),
    ),
    "vertex": SourceVariables({}, ("CLUSTER_SPEC",)),
    "skypilot": SourceVariables(
        {
            "node_rank": ("SKYPILOT_NODE_RANK",),
            "nnodes": ("SKYPILOT_NUM_NODES",),
            "nproc_per_node": ("SKYPILOT_NUM_GPUS_PER_NODE",),
        },
        ("SKYPILOT_NODE_IPS",),
    ),
    "dstack": SourceVariables(
        {
            "node_rank": ("DSTACK_NODE_RANK",),
            "nnodes": ("DSTACK_NODES_NUM",),
            "nproc_per_node": ("DSTACK_GPUS_PER_NODE",),
            "master_addr": ("DSTACK_MASTER_NODE_IP",),
        },
        ("DSTACK_NODES_IPS",),
    ),
    "kubernetes": SourceVariables({"node_rank": ("JOB_COMPLETION_INDEX",)}),
    "ray": SourceVariables({"ray_address": ("RAY_ADDRESS",)}),
}
"""By the name of the source, the one in force first."""


def variables_of(field: str, *, without: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the variables that give a field, in order of precedence, but those of the sources
    ``without``."""
    return tuple(
        name
        for source, variables in SOURCE_VARIABLES.items()
        if source not in without
        for name in variables.fields.get(field, ())
    )


RANK_VARIABLES = ("TF_CONFIG", *variables_of("rank"))
"""Variables that say which rank of a job a process is."""
IDENTITY_VARIABLES = tuple(n for v in SOURCE_VARIABLES.values() for n in v.identity)
"""Variables that only a process has that belongs to a job which somebody else starts."""
CLUSTER_VARIABLES = tuple(dict.fromkeys(n for v in SOURCE_VARIABLES.values() for n in v.names))
"""Every variable from which a cluster is read."""
