"""Messages of the kernel and of CUDA, as dmesg, journald and frameworks show them.

Xid errors of the GPU driver are read by `diagnosis.instruments.gpu_kernel_log`.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.kernel_assertions import (
    DEVICE_ASSERTION,
    KERNEL_ASSERTIONS,
    LATE_KERNEL,
)
from allaboard.facts import Exhibit, Testimony

_GPU = "nvidia-smi -q -d ECC,PAGE_RETIREMENT; dmesg -T | grep -i xid"


def _killed(before: str, after: str, sample: str) -> KnownMessage:
    """Return one wording of the kernel's that it ended a process, by what stands around it."""
    return KnownMessage(
        key="Killed process",
        pattern=before
        + r"Killed process (?P<pid>\d+)(?:, UID \d+,)? \((?P<name>[^)\n]{1,64})\)"
        + after,
        rule="RES001",
        says="the kernel killed process {pid} ({name}) for lack of memory",
        fix="give the job more memory, or smaller batches and fewer DataLoader workers",
        proves_not="that it is a rank of this job: the kernel's log is that of the whole host",
        sample=sample,
        source="its wording from the source of Linux 2.6 to 6.12 (mm/oom_kill.c), not recorded",
    )


MESSAGES = (
    _killed(
        r"[Oo]ut of memory: ",
        "",
        "Jan  2 03:04:05 node7 kernel: Out of memory: Killed process 4242 (python) total-vm:123456kB",
    ),
    # Up to Linux 4 the reason is in the line before: "Out of memory: Kill process 4242 (python) score 9".
    _killed(
        r"(?<!memory: )",
        r",? (?:UID \d+, )?total-vm:",
        "Aug 18 03:19:11 node7 kernel: Killed process 4242 (python) total-vm:12907828kB, anon-rss:11500204kB",
    ),
    KnownMessage(
        key="GPU is lost",
        pattern=r"(?:NVML|nvidia-smi|NVRM|nvml)[^\n]{0,120}\bGPU is lost",
        rule="LOG006",
        says="the driver has lost a GPU of this host: it fell off the bus",
        fix="on that host: dmesg -T | grep -iE 'xid|fallen off'; nvidia-smi   # Xid 79? Only a reboot "
        "brings it back: take the host out (scontrol update NodeName=HOST State=DRAIN Reason=gpu), and "
        "start again without it",
        sample="slurmstepd: error: NVML: Failed to get usage(15): GPU is lost",
        source="its wording from NVML's documents (NVML_ERROR_GPU_IS_LOST)",
    ),
    KnownMessage(
        key="systemd-coredump[",
        pattern=r"systemd-coredump\[\d+\]: (?:\[\S\] )?Process (?P<pid>\d+) \((?P<name>[^)\n]{1,64})"
        r"\) of user \d+ dumped(?:.{0,400}?#0 +0x\w+ (?P<function>(?!n/a)\w{3,80}))?",
        rule="EXIT001",
        says="process {pid} ({name}) crashed and left a core",
        fix="coredumpctl info {pid}   # on that host: its signal and its whole stack; is it slurmstepd, "
        "orted or prted: no program of yours crashed, but the launcher's daemon: tell who runs the "
        "cluster, and try the other ones, srun --mpi=pmi2 or mpirun",
        explains=("LOG012",),
        sample="May 14 19:36:26 node7 systemd-coredump[159861]: Process 159698 (slurmstepd) of user 0 "
        "dumped core.",
        source="its wording from the source of systemd 215 to 256 (coredump.c)",
    ),
    KnownMessage(
        key="CUDA error: uncorrectable ECC error",
        pattern=r"(?<!what\(\):  )CUDA error: uncorrectable ECC error encountered",
        rule="LOG006",
        says="a GPU's memory failed (uncorrectable ECC error)",
        fix=f"take the GPU out of use until it was reset: {_GPU}",
        sample="[rank4]: RuntimeError: CUDA error: uncorrectable ECC error encountered",
        source="its wording from CUDA's documents (cudaErrorECCUncorrectable), not recorded",
    ),
    KnownMessage(
        key="CUDA error: an illegal memory access",
        pattern=r"CUDA error: an illegal memory access was encountered",
        rule="LOG006",
        says="a kernel on the GPU wrote or read where it must not",
        fix="CUDA_LAUNCH_BLOCKING=1 shows the line that launched it; compute-sanitizer python SCRIPT tells "
        "the kernel; look for indices beyond a table, and for extensions built for another CUDA or PyTorch",
        proves_not=LATE_KERNEL,
        sample="[rank3]: RuntimeError: CUDA error: an illegal memory access was encountered",
        source="recorded with PyTorch 2.11 (AcceleratorError) on one H200",
    ),
    DEVICE_ASSERTION,
    *KERNEL_ASSERTIONS,
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = find_known_messages(exhibit, MESSAGES)
    return Testimony(heard=heard) if heard else None


READER = LogReader(read=read_log)
