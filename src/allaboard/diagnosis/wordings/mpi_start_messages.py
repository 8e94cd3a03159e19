"""Known messages of MPI libraries that cannot start in a process."""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage
from allaboard.facts import Certainty

_OPEN_MPI = "its wording from the sources of Open MPI 2 to 5 and PMIx 2 to 5 (help texts)"
_MPICH = "its wording from the sources of MPICH 3 to 4 and Intel MPI 2019 to 2021"
_SRUN_FIX = (
    "srun --mpi=list   # which of them has the MPI? ompi_info | grep -i pmix: then srun --mpi=pmix PROGRAM; "
    "else start it with the MPI's own mpirun inside the allocation, or let it be built --with-pmix"
)
MESSAGES = (
    KnownMessage(
        key="_base_select failed",
        pattern=r"(?<!\w)opal_(?P<kind>shmem|init|mca)_base_select failed",
        rule="LOG013",
        says="Open MPI found none of its own plug-ins ({kind}) where it looks for them: its installation was "
        "moved, is not whole, or another Open MPI's variables lead it astray",
        fix="ompi_info | grep -iE 'prefix|{kind}'; env | grep -E 'OPAL_PREFIX|OMPI_|LD_LIBRARY_PATH'   # "
        "as the "
        "program sees them: unset those of another installation, or export OPAL_PREFIX=DIR of this one; then "
        "start it by this Open MPI's own mpirun",
        explains=("LOG012", "EXIT003"),
        sample="  opal_shmem_base_select failed\n  --> Returned value -1 instead of OPAL_SUCCESS",
        source="its wording from the source of Open MPI 1.6 to 4.1 (opal/runtime/opal_init.c)",
    ),
    KnownMessage(
        key=" unit: -",
        pattern=r"(?:rank(?P<rank>\d{1,7})[^\n]{0,80}: )?PSM[23]? can't open (?:hfi|nic) unit: -?\d+",
        rule="LOG013",
        says="a rank got no context of its host's adapter (PSM): as many as it has are in use, or it has "
        "none that PSM can use",
        fix="on that host: hfi1stats; cat /sys/class/infiniband/hfi1_0/nctxts "
        "/sys/class/infiniband/hfi1_0/nfreectxts   # fewer ranks a host, no other job there, or "
        "PSM2_MAX_CONTEXTS_PER_JOB so that jobs share; else without it: FI_PROVIDER=tcp",
        proves_not="that another job holds them: more ranks than contexts look the same",
        explains=("EXIT001", "EXIT003", "LOG012"),
        sample="[1] node1.329747PSM2 can't open hfi unit: -1 (err=23)",
        source="its wording from the source of PSM2 10 to 12 (psm2_context.c)",
    ),
    KnownMessage(
        key="was not built with SLURM's PMI support",
        pattern=r"was not built with SLURM's PMI support",
        rule="LOG013",
        says="srun started an Open MPI that was built without Slurm's PMI, so that no process could join the "
        "others",
        fix=_SRUN_FIX,
        certainty=Certainty.CERTAIN,
        explains=("EXIT003",),
        sample="but OMPI was not built with SLURM's PMI support and therefore cannot execute.",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="not built with support for SLURM",
        pattern=r"OMPI was not built with support for SLURM",
        rule="LOG013",
        says="srun started an Open MPI that was built without Slurm's PMI, so that no process could join the "
        "others",
        fix=_SRUN_FIX,
        certainty=Certainty.CERTAIN,
        explains=("EXIT003",),
        sample="but OMPI was not built with support for SLURM's PMI and therefore cannot execute",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="PMII_singinit",
        pattern=r"PMII_singinit: execv failed",
        rule="JOIN010",
        says="each process is alone, a world of one: this MPICH did not find the launcher that started it",
        fix="srun --mpi=pmi2 PROGRAM   # or --mpi=pmix: srun --mpi=list; or MPICH's own mpiexec -n N PROGRAM",
        sample="PMII_singinit: execv failed: No such file or directory",
        source=_MPICH,
    ),
    KnownMessage(
        key=" unexpected contrib from ",
        pattern=r"mpi/pmix\w*: \w{1,60}: (?P<node>[\w.-]{1,255}) \[\d+\]: [^\n]{1,120}? unexpected "
        r"contrib from (?P<other>[\w.-]{1,255}):\d+",
        rule="LOG013",
        says="Slurm's PMIx plugin on {node} refused what {other} sent as the processes were to meet, and "
        "they waited on in MPI_Init",
        fix="srun --mpi=list; srun --mpi=pmi2 PROGRAM   # or MPIR_CVAR_PMI_VERSION=2 mpiexec; a step "
        "left from "
        "before with the same PMIx? Start a new allocation; then tell who runs Slurm (pmixp_server.c)",
        proves_not="that {other} is at fault: an older step or another version of the plugin looks the same",
        explains=("EXIT003", "EXIT001", "EXIT008", "LOG012"),
        sample="[2026-01-08T13:01:38.539] error:  mpi/pmix_v4: _process_server_request: node-a [0]: "
        "pmixp_server.c:935: 0x40039c008b10: unexpected contrib from node-b:1, coll->seq=0, seq=0",
        source="its wording from the source of Slurm 17.11 to 25.05 (mpi/pmix/pmixp_server.c)",
    ),
    KnownMessage(
        key="init failed: ",
        pattern=r"MPID_Init\(\d+\)\.*: +PMI2? init failed: (?P<code>\d+)",
        rule="LOG013",
        says="the processes found no PMI of their launcher (PMI init failed), so that none could join "
        "the others",
        fix="srun --mpi=list; srun --mpi=cray_shasta PROGRAM   # on a Cray the MPI's own launcher (srun, "
        "aprun) inside the job, not ssh or bash; elsewhere --mpi=pmi2 or mpiexec of the same MPI",
        proves_not="which launcher it expects",
        explains=("EXIT003", "LOG012", "LOG011"),
        sample="MPID_Init(611).......:  PMI2 init failed: 1",
        source="its wording from the source of MPICH 3.0 to 4.3 and Cray MPICH 7 to 8",
    ),
    KnownMessage(
        key="Framework: psec",
        pattern=r"Framework: psec\s+Component: munge",
        rule="LOG013",
        says="PMIx cannot use munge here, by which the hosts are to prove who they are: mostly a container "
        "without it",
        fix="export PMIX_MCA_psec=native   # in the job, for all hosts; or install libmunge in the container "
        "and mount /run/munge",
        sample="Host:      node7\nFramework: psec\nComponent: munge",
        source=_OPEN_MPI,
    ),
)
NO_FABRIC = KnownMessage(
    key="fabric is not available and fallback",
    pattern=r"MPI startup\(\): (?P<fabric>\w{2,12}) fabric is not available and fallback",
    rule="LOG013",
    says="Intel MPI cannot use the fabric {fabric} on a host, and may take no other (I_MPI_FALLBACK=0)",
    fix="fi_info   # on each host: has it a provider? Then I_MPI_FABRICS=shm:ofi with FI_PROVIDER of "
    "it, or I_MPI_FALLBACK=1; the lines before say why it is not there",
    explains=("EXIT003", "LOG012"),
    sample="[1] MPI startup(): ofi fabric is not available and fallback fabric is not enabled",
    source="its wording from the source of Intel MPI 4 to 2019",
)
"""It says less than the adapter's own library."""
UNREACHED_PMI = KnownMessage(
    key=" in file ",
    pattern=r"(?:OPAL|PMIX) ERROR: (?P<why>Unreachable|UNREACHABLE|Not initialized"
    r"|ERROR) in file (?:ext\dx_client|pmix\dx_client|client/pmix_client|ptl_tcp\w*)\.c",
    rule="LOG013",
    says="Open MPI could not reach the PMI of the launcher that started it ({why}), so that no process could "
    "join the others",
    fix=_SRUN_FIX,
    explains=("LOG012", "EXIT003"),
    sample="[node-b:04411] OPAL ERROR: Unreachable in file ext3x_client.c at line 112",
    source=_OPEN_MPI,
)
"""It says less than the help that may follow it."""
