"""What functions of the kernel wait for, by their names, and what to do when one does not come back.

The names are those of Linux 3.10 to 6.12, and of the modules of Lustre 2.12 to 2.16, IBM Storage Scale 5,
BeeGFS 7 and NVIDIA's driver 470 to 580.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_SERVER = (
    "on that host: dmesg -T | tail -40; mount | grep -E '{kinds}'; timeout 10 stat -f MOUNT   # no answer: "
    "the server, or the network to it, is at fault; the process cannot be killed before that answers"
)


class KernelWait(NamedTuple):
    """What a process waits for inside the kernel."""

    functions: re.Pattern[str]
    """Names of functions that show it."""
    awaited: str
    """What it waits for."""
    fix: str
    """What to do next."""


def _wait(functions: str, awaited: str, fix: str) -> KernelWait:
    return KernelWait(re.compile(rf"(?:{functions})"), awaited, fix)


KERNEL_WAITS = (
    _wait(
        r"_?_?nfs\d?_|rpc_|_?_?rpc_execute|svc_|xprt_",
        "its NFS server",
        _SERVER.format(kinds="nfs"),
    ),
    _wait(
        r"cl_|ll_|ldlm_|ptlrpc_|osc_|lov_|lustre|lnet_|mdc_|lmv_",
        "a server of Lustre",
        "on that host: lfs check servers; dmesg -T | grep -iE 'lustre|lnet' | tail -40",
    ),
    _wait(
        r"gpfs|mmfs|kxWait|cxiWait|cxi[A-Z]",
        "IBM Storage Scale (GPFS)",
        "on that host: mmdiag --waiters; mmgetstate -a",
    ),
    _wait(r"ceph_|_?_?ceph", "a server of Ceph", _SERVER.format(kinds="ceph")),
    _wait(
        r"FhgfsOps|fhgfs|beegfs",
        "a server of BeeGFS",
        "on that host: beegfs-check-servers; dmesg -T | tail -40",
    ),
    _wait(r"cifs_|smb2?_", "its SMB server", _SERVER.format(kinds="cifs|smb")),
    _wait(
        r"fuse_|_?_?fuse|request_wait_answer",
        "a filesystem in user space (FUSE: s3fs, gcsfuse, goofys, sshfs)",
        "on that host: mount | grep fuse; look at the process that serves it, and its log",
    ),
    _wait(
        r"uvm_|nv_|nvidia|os_acquire_|rm_|_nv\d",
        "NVIDIA's driver",
        "on that host: dmesg -T | grep -iE 'xid|nvrm' | tail -20; nvidia-smi   # hangs too: take the host "
        "out, reboot it",
    ),
    _wait(
        r"ib_|mlx[45]_|rdma_|uverbs_",
        "the InfiniBand adapter",
        "on that host: ibstat; dmesg -T | grep -iE 'mlx|infiniband' | tail -20",
    ),
    _wait(
        r"jbd2_|ext4_|xfs_|btrfs_|blk_|submit_bio|io_schedule|wait_on_page|folio_wait|wait_on_buffer|md_|raid\d",
        "a disk",
        "on that host: dmesg -T | grep -iE 'I/O error|ata|nvme|reset' | tail -20; iostat -x 1 3",
    ),
    _wait(
        r"swap_|do_swap_page|shrink_|try_to_free|mem_cgroup",
        "memory (the host swaps, or its cgroup is full)",
        "on that host: free -h; vmstat 1 3; fewer DataLoader workers, or more memory",
    ),
)
UNKNOWN_WAIT = KernelWait(
    re.compile(""),
    "something that is not known",
    "on that host: dmesg -T | tail -40; sudo cat /proc/{pid}/stack",
)


def find_kernel_wait(functions: list[str]) -> tuple[KernelWait, str]:
    """Return what these functions wait for, and the one that shows it; the unknown wait if none is known."""
    for wait in KERNEL_WAITS:
        for function in functions:
            if wait.functions.match(function):
                return wait, function
    return UNKNOWN_WAIT, functions[0] if functions else ""
