"""Known messages of NCCL about its host: shared memory, GPUs, drivers, ranks that came twice.

Most samples are from NCCL's documents and source; what says so was recorded on one H200.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage
from allaboard.diagnosis.wordings.nccl_network_messages import (
    DEBUG_FIX,
    FIRST_USE_DOUBT,
    NOT_RECORDED,
    RECORDED,
)
from allaboard.facts import Certainty

_SHM = (
    "df -h /dev/shm; in a container give it more: docker run --shm-size=8g (or --ipc=host), in Kubernetes an "
    "emptyDir of medium Memory at /dev/shm"
)
_DRIVER = (
    r"(?:API call is not supported in the installed CUDA driver|CUDA driver version is insufficient|"
    r"the provided PTX was compiled with an unsupported toolchain|"
    r"system has unsupported display driver)[^'\n]{0,80}"
)
"""Errors of CUDA that say that the driver is older than the program needs."""
_COVERED_ELSEWHERE = (
    r"NCCL WARN Call to ibv_(?:create|alloc|reg)_|onnect to|shared memory segment|reverse path"
    r"|Duplicate GPU|Cuda failure|closed by remote peer|Got completion|Call to recv|Call to connect"
    r"|no socket interface|No interface found|failed to extend /|Call to posix_fallocate"
    r"|collective mismatch error|message truncated|Call to ibv_modify_qp|Invalid rank requested"
    r"|No usable listening interface|Socket creation failed"
)
"""Errors that other messages of this file recognise."""
SHM_FULL = KnownMessage(
    key="No space left on device",
    pattern=r"(?:/dev/shm|shm\.h|shmutils|shm\.cc|shared memory|posix_fallocate|fallocate)[^\n]{0,160}"
    r"No space left on device",
    rule="RES004",
    says="/dev/shm is full: NCCL found no room for its shared memory",
    fix=_SHM,
    explains=("LOG010",),
    certainty=Certainty.CERTAIN,
    sample="node1:4242:4300 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on "
    "device",
    source=NOT_RECORDED,
)


def _failed(kind: str) -> KnownMessage:
    """Return the message for what PyTorch adds of NCCL's last error to an error of this ``kind``."""
    return KnownMessage(
        key=f"nccl{kind}Error: ",
        pattern=rf"nccl{kind}Error: [^\n]*\n(?:\[rank\d+\]: *)?Last error:\s*(?:\[rank\d+\]: *)?"
        rf"(?![^\n]{{0,120}}(?:{_COVERED_ELSEWHERE}))(?P<what>[^\s\[][^\n]{{0,200}})",
        rule="LOG010",
        says="NCCL failed: {what}",
        fix=DEBUG_FIX,
        proves_not=FIRST_USE_DOUBT,
        sample=f"[rank1]: nccl{kind}Error: System call or external library call failed or device error. \n"
        "[rank1]: Last error:\n[rank1]: Call to ibv_create_qp failed with error Cannot allocate memory",
        source=NOT_RECORDED,
    )


def _no_room(key: str, pattern: str, line: str, source: str) -> KnownMessage:
    """Return the message of one version of NCCL that its file in /dev/shm cannot grow."""
    return KnownMessage(
        key=key,
        pattern=pattern,
        rule="RES004",
        says="NCCL found no room for its shared memory (/dev/shm)",
        fix=_SHM,
        proves_not="how full it is now: NCCL's files are gone with the ranks",
        sample=line,
        source=source,
    )


HOST_MESSAGES = (
    SHM_FULL,
    KnownMessage(
        key="graph/xml.",
        pattern=r"graph/xml\.(?:h|cc):\d+ NCCL WARN (?P<what>Attribute (?P<name>\w+) of node (?P<node>\w+)"
        r" not found|(?:XML|Could not open XML|Unable to find XML)[^\n]{0,100})",
        rule="LOG010",
        says="NCCL cannot use the file that describes the host's topology: {what}",
        fix="echo $NCCL_TOPO_FILE   # unset it: NCCL then finds the topology itself; a plugin of a cloud "
        "(aws-ofi-nccl) may set it: use the version that is made for this kind of host",
        proves_not=FIRST_USE_DOUBT,
        sample="node1:75:95 [2] graph/xml.h:101 NCCL WARN Attribute arch of node cpu not found",
        source="from the source of NCCL 2.6 to 2.30 (graph/xml.h)",
    ),
    KnownMessage(
        key="Duplicate GPU detected",
        pattern=r"Duplicate GPU detected : rank (?P<one>\d+) and rank (?P<two>\d+) both on CUDA device "
        r"(?P<device>\w+)",
        rule="LOG004",
        says="ranks {one} and {two} use one GPU (CUDA device {device})",
        fix="torch.cuda.set_device(int(os.environ['LOCAL_RANK']))   # in each process, before init; then: "
        "nvidia-smi -L; echo $LOCAL_RANK $CUDA_VISIBLE_DEVICES: no more processes on a host than it has GPUs",
        sample="vm:2408:2408 [0] init.cc:904 NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on "
        "CUDA device 60",
        source=RECORDED,
    ),
    KnownMessage(
        key=" has already checked in",
        pattern=r"Bootstrap Root ?: rank (?P<rank>\d+) of (?P<size>\d+) ranks has already checked in",
        rule="JOIN005",
        says="two processes came to NCCL as rank {rank} of {size}: processes of two nodes, or of two jobs, "
        "take themselves for the same rank",
        fix="print(RANK, WORLD_SIZE, hostname) in each process: every rank once. With Slurm: srun with as "
        "many tasks a node as GPUs (--ntasks-per-node, and Lightning's devices= and num_nodes= to match); "
        "with torchrun: another --node-rank on each node; another job: a MASTER_PORT of its own",
        explains=("LOG010", "EXIT005"),
        sample="gn14:18569:18835 [0] bootstrap.cc:131 NCCL WARN Bootstrap Root : rank 1 of 8 ranks has "
        "already checked in",
        source="from the source of NCCL 2.3 to 2.27 (bootstrap.cc)",
    ),
    KnownMessage(
        key="Invalid rank requested",
        pattern=r"Invalid rank requested ?: (?P<rank>\d+)/(?P<size>\d+)",
        rule="JOIN011",
        says="rank {rank} was to join a communicator of {size}, whose ranks end at the size less one",
        fix="echo $RANK $WORLD_SIZE   # in that process: ranks are 0 to WORLD_SIZE less one; in Kubernetes "
        "WORLD_SIZE counts the master too",
        explains=("LOG010",),
        certainty=Certainty.CERTAIN,
        sample="node1:25:25 [0] init.cc:981 NCCL WARN Invalid rank requested : 2/2",
        source="from the source of NCCL 2.3 to 2.30 (init.cc)",
    ),
    KnownMessage(
        key="CUDA IPC handle",
        pattern=r"NCCL WARN [^\n]{0,40}(?:failed to open|Failed to open|Could not open)"
        r" CUDA IPC handle ?: ?(?:\d+ )?(?P<what>(?!(?:device|invalid) )[^\n']{1,80})",
        rule="LOG010",
        says="NCCL could not reach the memory of another GPU of this host: {what}",
        fix="nvidia-smi topo -p2p r; nvidia-smi topo -m   # NCCL_P2P_DISABLE=1 goes through host memory "
        "instead; virtual machines need ACS and IOMMU set for peer access",
        explains=("EXIT002",),
        proves_not="that a GPU is broken: two that have no peer access say the same",
        sample="host1:909608:910337 [0] transport/p2p.cc:238 NCCL WARN failed to open CUDA IPC handle : 217 "
        "peer access is not supported between these two devices",
        source="from the source of NCCL 2.2 to 2.14 (transport/p2p.cc)",
    ),
    KnownMessage(
        key="Cuda failure",
        pattern=rf"Cuda failure (?:\d+ )?'(?P<what>{_DRIVER})",
        rule="LOG006",
        says="the GPU driver of this host is too old for this build of NCCL: {what}",
        fix="nvidia-smi --query-gpu=driver_version --format=csv   # on this host: upgrade the driver, or "
        "install a build of the framework for an older CUDA, which brings an older NCCL",
        sample="node1:4242:4300 [0] init.cc:1803 NCCL WARN Cuda failure 35 'CUDA driver version is "
        "insufficient for CUDA runtime version'",
        source="from CUDA's documents (cudaErrorCallRequiresNewerDriver, cudaErrorInsufficientDriver, "
        "cudaErrorUnsupportedPtxVersion, cudaErrorSystemDriverMismatch), not recorded",
    ),
    KnownMessage(
        key="Cuda failure",
        pattern=r"Cuda failure (?:\d+ )?'out of memory'",
        rule="RES001",
        says="NCCL found no GPU memory for its buffers: the memory of a GPU is used up",
        fix="nvidia-smi   # on that host: does another program hold memory? Leave some to NCCL: a smaller "
        "batch, torch.cuda.set_per_process_memory_fraction(0.9), XLA_PYTHON_CLIENT_MEM_FRACTION=.85; "
        "NCCL_BUFFSIZE=1048576 needs less",
        proves_not="that NCCL or the network is at fault",
        explains=("EXIT005", "LOG010"),
        sample="node1:4242:4300 [0] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'",
        source=NOT_RECORDED,
    ),
    KnownMessage(
        key="Failed to find reverse path from remNode",
        pattern=r"(?P<what>Failed to find reverse path from remNode [^\n]{1,80})",
        rule="LOG010",
        says="NCCL (RCCL) cannot make out how the GPUs of the host are linked: {what}",
        fix="on that host: rocm-smi --showtopo, or nvidia-smi topo -m   # does each pair have a link in both "
        "directions? In a virtual machine or a container give it all GPUs of the node and /sys as it is; "
        "NCCL_TOPO_DUMP_FILE=/tmp/topo.xml shows what it saw; NCCL_P2P_DISABLE=1 for one run",
        proves_not="that the line of the traceback is at fault: NCCL failed where it was first used",
        explains=("LOG012",),
        sample="node1:75:95 [2] graph/paths.cc:61 NCCL WARN Failed to find reverse path from remNode "
        "0/200000 nlinks 3 to node 0/700000",
        source="its wording from the source of NCCL 2.8 to 2.30 and RCCL 2.8 to 2.26 (graph/paths.cc)",
    ),
    KnownMessage(
        key="shm.",
        pattern=r"shm\.(?:h|cc):\d+ NCCL WARN Cuda failure (?:\d+ )?'(?P<what>[^'\n]{1,120})'",
        rule="LOG006",
        says="CUDA refused NCCL's shared memory between the processes of a host: {what}",
        fix="NCCL_SHM_DISABLE=1 for one run   # does it help? Then see on that host: df -h /dev/shm, whether "
        "the processes share one /dev/shm and one namespace (containers: --ipc=host), and the driver's "
        "version: nvidia-smi; a newer NCCL",
        proves_not="that the GPU is at fault",
        explains=("LOG010",),
        sample="node1:3070:3090 [0] include/shm.h:42 NCCL WARN Cuda failure 'invalid argument'",
        source="its wording from the source of NCCL 2.4 to 2.30 (include/shm.h, transport/shm.cc)",
    ),
    KnownMessage(
        key="system not yet initialized",
        pattern=r"(?:Cuda failure (?:802 )?'|CUDA error: )system not yet initialized",
        rule="LOG006",
        says="CUDA cannot use the GPUs of this host yet: those with an NVSwitch (HGX, DGX) need the service "
        "nvidia-fabricmanager, which does not run there or is of another version than the driver",
        fix="systemctl status nvidia-fabricmanager; dpkg -l | grep -iE 'fabricmanager|nvidia-driver'   # on "
        "that host: start it, in exactly the driver's version; nvidia-smi -q | grep -A2 Fabric must say "
        "Completed",
        proves_not="that NCCL or the network is at fault",
        explains=("LOG010",),
        certainty=Certainty.CERTAIN,
        sample="Last error:\nCuda failure 802 'system not yet initialized'",
        source="CUDA 11 to 13 (cudaErrorSystemNotReady, 802), NVIDIA's Fabric Manager guide",
    ),
    KnownMessage(
        key="Cuda failure",
        pattern=rf"(?<!\bshm\.h:\d\d NCCL WARN )(?<!\bshm\.cc:\d\d\d NCCL WARN )"
        rf"Cuda failure (?:\d+ )?'(?!{_DRIVER}|out of memory'|system not yet)(?P<what>[^'\n]{{1,120}})'",
        rule="LOG006",
        says="CUDA failed below NCCL: {what}",
        fix="on that host: nvidia-smi; dmesg -T | grep -i xid",
        proves_not="that NCCL or the network is at fault",
        sample="node1:4242:4300 [0] enqueue.cc:90 NCCL WARN Cuda failure 'unspecified launch failure'",
        source=NOT_RECORDED,
    ),
    KnownMessage(
        key="shared memory segment",
        pattern=r"[Ee]rror (?:while |: )?(?:creating|: )?\s*shared memory segment \S+",
        rule="RES004",
        says="NCCL found no room for its shared memory (/dev/shm)",
        fix=_SHM,
        proves_not="that it is full: a path that cannot be written looks the same",
        sample="[rank0]: Error while creating shared memory segment /dev/shm/nccl-Lz7jQm (size 9637888)",
        source="from the source of NCCL 2.8 to 2.30 (misc/shmutils.cc)",
    ),
    KnownMessage(
        key="attaching to shared memory segment",
        pattern=r"attaching to shared memory segment \S+",
        rule="LOG010",
        says="NCCL did not find the shared memory of a peer on this host (in /dev/shm)",
        fix="give the ranks of one host one /dev/shm: one container for all, --ipc=host, or one volume for "
        "all at /dev/shm; NCCL_SHM_DISABLE=1 for one run proves it",
        proves_not="that they are in other containers: a peer that has just ended removes its file too",
        sample="[rank0]: Error while attaching to shared memory segment /dev/shm/nccl-Lz7jQm (size 9637888), "
        "error: No such file or directory (2)",
        source="from the source of NCCL 2.4 to 2.30 (misc/shmutils.cc): who attaches needs no room; the "
        "error is in the message since 2.19, and on a line of its own before",
    ),
    _no_room(
        "failed to extend /",
        r"failed to extend (?P<path>/\S+) to (?P<many>\d+) bytes",
        "node1:4242:4300 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-Lz7jQm to "
        "9637892 bytes, error: No space left on device (28)",
        "from the source of NCCL 2.11 to 2.30 (misc/shmutils.cc); without the error before 2.19",
    ),
    _no_room(
        "Call to posix_fallocate failed",
        r"NCCL WARN Call to posix_fallocate failed : No space left on device",
        "node1:4242:4300 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on "
        "device",
        "from the source of NCCL 2.4 to 2.10 (include/shm.h)",
    ),
    KnownMessage(
        key="llocate shared memory",
        pattern=r"NCCL WARN [^\n]{0,40}(?:Unable to|Could not|Failed to) allocate shared memory",
        rule="RES004",
        says="NCCL found no room for its shared memory",
        fix=_SHM,
        proves_not="that it is full: a path that cannot be written looks the same",
        sample="node1:4242:4300 [0] include/shm.h:42 NCCL WARN Unable to allocate shared memory (4263936 "
        "bytes)",
        source=NOT_RECORDED,
    ),
    *map(_failed, ("System", "Internal", "UnhandledCuda")),
    KnownMessage(
        key="NCCL_DEBUG=INFO for details",
        pattern=r"NCCL [Ee]rror[^\n]{0,160}?(?P<what>unhandled (?:system|cuda) error|internal error) "
        r"\(run with NCCL_DEBUG=INFO for details\)(?![^\n]*\n[^\n]*nccl\w+: )",
        rule="LOG010",
        says="NCCL failed: {what}",
        fix=DEBUG_FIX,
        proves_not=FIRST_USE_DOUBT,
        sample="RuntimeError: NCCL Error 1: unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        source=NOT_RECORDED,
    ),
)
