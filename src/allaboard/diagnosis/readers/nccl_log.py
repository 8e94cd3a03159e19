"""Messages of NCCL: its WARN lines, and INFO lines under NCCL_DEBUG=INFO.

There was no GPU where this was written: every sample is from NCCL's documents and source.
"""

from __future__ import annotations

import re

from allaboard.analysis.log_messages import KnownMessage, find_known_messages, speaker_rank
from allaboard.analysis.network.nccl_loopback import as_loopback
from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Heard, Speaker, Testimony

_LOOPBACK = "NET009"
_DOCUMENT = "from NCCL's source and documents, not recorded: it needs GPUs"
_INFO = "run once with NCCL_DEBUG=INFO: its lines before this one tell on which host, and with which device"
_FIRST_USE = "that the line of the traceback is at fault: NCCL failed where it was first used"
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
_NO_LOCKED_MEMORY = r"ibv_(?:create_(?:qp|cq)|alloc_pd|reg_mr\w*) failed\s*(?:\n|$)"
"""Calls that lock memory, as NCCL before 2.8 writes them: without the error."""
_COVERED_ELSEWHERE = (
    r"NCCL WARN Call to ibv_(?:create|alloc|reg)_|"
    r"onnect to|shared memory segment|Duplicate GPU|Cuda failure|closed by remote peer|Got completion|"
    r"Call to recv|Call to connect|no socket interface|No interface found|failed to extend /|Call to "
    r"posix_fallocate|"
    r"collective mismatch error|message truncated|Call to ibv_modify_qp|Invalid rank requested|"
    r"No usable listening "
    r"interface|Socket creation failed"
)
"""Errors that other messages of this file recognise."""
_SHM_FULL = KnownMessage(
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
    source=_DOCUMENT,
)


def _failed(kind: str) -> KnownMessage:
    """Return the message for what PyTorch adds of NCCL's last error to an error of this ``kind``."""
    return KnownMessage(
        key=f"nccl{kind}Error: ",
        pattern=rf"nccl{kind}Error: [^\n]*\n(?:\[rank\d+\]: *)?Last error:\s*(?:\[rank\d+\]: *)?"
        rf"(?![^\n]{{0,120}}(?:{_COVERED_ELSEWHERE}))(?P<what>[^\s\[][^\n]{{0,200}})",
        rule="LOG010",
        says="NCCL failed: {what}",
        fix=_INFO,
        proves_not=_FIRST_USE,
        sample=f"[rank1]: nccl{kind}Error: System call or external library call failed or device error. \n"
        "[rank1]: Last error:\n[rank1]: Call to ibv_create_qp failed with error Cannot allocate memory",
        source=_DOCUMENT,
    )


def _no_interface(key: str, pattern: str, line: str, source: str) -> KnownMessage:
    """Return the message of one version of NCCL that this host has no network interface for it."""
    return KnownMessage(
        key=key,
        pattern=pattern,
        rule="LOG005",
        says="NCCL found no network interface to use",
        fix="ip -br address   # on this host: has any but lo an address? NCCL_SOCKET_IFNAME must name one",
        sample=f"node1:4242:4300 [0] {line}",
        source=source,
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


_SIZES_DIFFER = KnownMessage(
    key="NET/",
    pattern=r"NET/(?:IB|Socket|\w+) : [^\n]{0,120}?(?:collective mismatch error,? local size (?P<one>\d+) "
    r"remote "
    r"(?:size )?(?P<other>\d+)|message truncated : receiving (?P<came>\d+) bytes instead of (?P<want>\d+))",
    rule="LOG003",
    says="NCCL got another size than it expected from a peer: the ranks called different collectives, or the "
    "same one with other sizes, or NCCL_PROTO and NCCL_ALGO differ between them",
    fix="compare what the ranks call (TORCH_DISTRIBUTED_DEBUG=DETAIL, NCCL_DEBUG_SUBSYS=COLL with "
    "NCCL_DEBUG=INFO), and on all hosts: env | grep NCCL_; the same NCCL on all: its version stands at NCCL "
    "INFO NCCL version",
    proves_not="which rank is wrong",
    explains=("LOG010",),
    sample="node1:14508:15205 [0] transport/net_ib.cc:651 NCCL WARN NET/IB : collective mismatch error local "
    "size 348160 remote 32768 addr 7fb47b011000 rkey baa8 seq 5a/5a",
    source="its wording from the source of NCCL 2.4 to 2.27 (net_ib.cc, net_socket.cc)",
)
MESSAGES = (
    _SIZES_DIFFER,
    _SHM_FULL,
    KnownMessage(
        key="NET/OFI",
        pattern=r"NCCL WARN NET/OFI (?P<what>Couldn't find any optimal provider|Failed to initialize \w+ "
        r"protocol"
        r"|No (?:eligible|matching) providers?[^\n]{0,80}|fi_getinfo[^\n]{0,80})",
        rule="LOG005",
        says="NCCL's plugin for AWS found no network of its own (EFA): {what}",
        fix="fi_info -p efa -t FI_EP_RDM   # on that host, in its container: empty? The container needs "
        "/dev/infiniband (--device, in Kubernetes vpc.amazonaws.com/efa) and libfabric; without EFA: "
        "NCCL_NET_PLUGIN=none, or FI_PROVIDER=tcp",
        explains=("LOG010",),
        sample="ip-10-0-3-7:101:101 [0] find_ofi_provider:543 NCCL WARN NET/OFI Couldn't find any optimal "
        "provider",
        source="from users' reports of aws-ofi-nccl 1.0 to 1.16",
    ),
    KnownMessage(
        key="NET/OFI Request",
        pattern=r"NCCL WARN NET/OFI Request [^\n]{1,80}completed with error\. RC: (?P<code>\d+)\. Error: "
        r"(?P<why>[^\n]{1,80}?)\. Completed",
        rule="LOG010",
        says="a transfer over libfabric (EFA) failed: {why} (code {code})",
        fix="read the logs of the ranks that do not write this: one that ended breaks transfers, too; else "
        "the "
        "security group must allow all traffic to and from itself, in both directions; fi_info -p efa",
        proves_not="whether the peer ended or the network refused it",
        sample="algo-1:127:305 [0] ofi_process_cq:1033 NCCL WARN NET/OFI Request 0x7f9a completed with "
        "error. RC: "
        "21. Error: unknown error. Completed length: 0, Request: { dev: 0 }",
        source="from users' reports of aws-ofi-nccl 1.0 to 1.16",
    ),
    KnownMessage(
        key="graph/xml.",
        pattern=r"graph/xml\.(?:h|cc):\d+ NCCL WARN (?P<what>Attribute (?P<name>\w+) of node (?P<node>\w+) "
        r"not "
        r"found|(?:XML|Could not open XML|Unable to find XML)[^\n]{0,100})",
        rule="LOG010",
        says="NCCL cannot use the file that describes the host's topology: {what}",
        fix="echo $NCCL_TOPO_FILE   # unset it: NCCL then finds the topology itself; a plugin of a cloud "
        "(aws-ofi-"
        "nccl) may set it: use the version that is made for this kind of host",
        proves_not=_FIRST_USE,
        sample="node1:75:95 [2] graph/xml.h:101 NCCL WARN Attribute arch of node cpu not found",
        source="from the source of NCCL 2.6 to 2.30 (graph/xml.h)",
    ),
    KnownMessage(
        key="Duplicate GPU detected",
        pattern=r"Duplicate GPU detected : rank (?P<one>\d+) and rank (?P<two>\d+) both on CUDA device "
        r"(?P<device>\w+)",
        rule="LOG004",
        says="ranks {one} and {two} use one GPU (CUDA device {device})",
        fix="torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) before init; see that no more "
        "processes are started on a host than it has GPUs",
        sample="node1:4242:4300 [0] init.cc:889 NCCL WARN Duplicate GPU detected : rank 0 and rank 1 "
        "both on CUDA device 1000",
        source=_DOCUMENT,
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
        key="Cannot allocate memory",
        pattern=r"NCCL WARN [^\n]{0,40}Call to (?P<call>ibv_(?:reg_\w*mr\w*|create_(?:cq|qp|srq)|alloc_\w+)) "
        r"failed(?: with error)? ?:? ?(?:\d+ )?Cannot allocate memory",
        rule="LOG010",
        says="RDMA could not lock memory ({call}): the limit on locked memory is too low",
        fix="ulimit -l   # in the job, on that host: it must be unlimited. Docker: --ulimit memlock=-1; "
        "Slurm: PropagateResourceLimitsExcept=MEMLOCK; systemd: LimitMEMLOCK=infinity; else "
        "/etc/security/limits.conf",
        proves_not="that the limit is the reason: a full table of the HCA looks the same: "
        "dmesg -T | grep mlx",
        sample="node1:41822:41899 [2] misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with "
        "error Cannot allocate memory",
        source="from the source of NCCL 2.4 to 2.30 (misc/ibvwrap.cc)",
    ),
    _no_interface(
        "no socket interface found",
        r"(?:Bootstrap|NET/Socket) : no socket interface found",
        "bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
        "from the source of NCCL 2.10 to 2.30 (bootstrap.cc)",
    ),
    _no_interface(
        "No usable listening interface found",
        r"NET/Socket : No usable listening interface found",
        "misc/socket.cc:120 NCCL WARN NET/Socket : No usable listening interface found",
        "from the source of NCCL 2.30 (misc/socket.cc)",
    ),
    _no_interface(
        "0 interfaces found",
        # Alone it is no failure: NCCL may have another network.
        r"NET/Socket : 0 interfaces found\s*\n[^\n]{0,200}NCCL WARN",
        "NCCL INFO NET/Socket : 0 interfaces found\nnode1:4242:4300 [0] bootstrap.cc:201 NCCL WARN "
        "Bootstrap : cannot listen",
        "from the source of NCCL 2.4 to 2.8 (include/socket.h)",
    ),
    _no_interface(
        "Socket creation failed : Address family",
        r"Socket creation failed : Address family not supported by protocol",
        "include/socket.h:345 NCCL WARN Net : Socket creation failed : Address family not supported by "
        "protocol",
        "from the source of NCCL 2.4 to 2.11 (include/socket.h): an empty address has no family",
    ),
    KnownMessage(
        key="No interface found in the same subnet",
        pattern=r"No interface found in the same subnet as remote address (?P<peer>\S+)",
        rule="LOG005",
        says="NCCL found no interface in the network of {peer}",
        fix="set NCCL_SOCKET_IFNAME to the interface that reaches {peer}: ip route get {peer}",
        proves_not="that {peer} cannot be reached by another interface",
        sample="node1:4242:4300 [0] misc/socket.cc:210 NCCL WARN No interface found in the same subnet as "
        "remote address 10.1.2.3<41000>",
        source=_DOCUMENT,
    ),
    KnownMessage(
        key="onnect to",
        pattern=r"(?:NCCL (?:WARN|INFO) [^\n]{0,80}?|[Ss]ocket\w{1,30}: )[Cc]onnect to "
        r"(?P<peer>[\w.:%-]+)<(?P<port>\d+)> "
        # What it tries again mostly succeeds: at the start not all listen yet.
        r"(?:failed|timed out|returned)(?![^\n]{0,120}retrying)(?: : (?P<why>[^\n]{0,60}))?",
        rule="JOIN004",
        says="NCCL could not connect to {peer}, port {port}",
        fix="ip route get {peer}; nc -vz {peer} {port}   # every rank must reach every other on all ports "
        "above 1024: firewalls; NCCL_SOCKET_IFNAME chooses the interface",
        proves_not="that the peer is gone: a firewall and an address of a wrong interface look the same",
        explains=("EXIT005", "LOG010"),
        sample="node1:4242:4300 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to "
        "10.1.2.3<41000> failed : Connection refused",
        source="from the source of NCCL 2.8 to 2.30 (misc/socket.cc, os/linux.cc): `failed : TEXT`, since "
        "2.19 also `returned NUMBER(TEXT) errno ...` and `returned TEXT, exceeded error retry count`",
    ),
    KnownMessage(
        key="ocketPollConnect to",
        pattern=r"ocketPollConnect to (?P<peer>[\w.:%-]+)<(?P<port>\d+)> failed with error",
        rule="JOIN004",
        says="NCCL could not connect to {peer}, port {port}",
        fix="ip route get {peer}; nc -vz {peer} {port}   # every rank must reach every other on all ports "
        "above 1024: firewalls; NCCL_SOCKET_IFNAME chooses the interface",
        proves_not="that the peer is gone: a firewall and an address of a wrong interface look the same",
        explains=("EXIT005", "LOG010"),
        sample="node1:4242:4300 [0] os/linux.cc:328 NCCL WARN ncclOsSocketPollConnect to 10.1.2.3<41000> "
        "failed with error Connection timed out",
        source="from the source of NCCL 2.30 (os/linux.cc)",
    ),
    KnownMessage(
        key="Call to connect ",
        pattern=r"NCCL WARN [^\n]{0,40}?Call to connect (?:failed|timeout) ?:? ?"
        r"(?P<why>[^\n]{0,60})(?<!retrying)",
        rule="JOIN004",
        says="NCCL could not connect to a peer ({why})",
        fix="NCCL_DEBUG=INFO for one run shows the addresses; every rank must reach every other on all ports "
        "above 1024: firewalls; NCCL_SOCKET_IFNAME chooses the interface",
        proves_not="that the peer is gone: a firewall and an address of a wrong interface look the same",
        explains=("EXIT005", "LOG010"),
        sample="node1:4242:4300 [0] include/socket.h:403 NCCL WARN Call to connect failed : Connection "
        "timed out",
        source="from the source of NCCL 2.4 to 2.18 (checks.h, include/socket.h)",
    ),
    KnownMessage(
        key="onnection closed by remote peer",
        pattern=r"[Cc]onnection closed by remote peer (?P<peer>[\w.:-]+)<(?P<port>\d+)>",
        rule="EXIT005",
        says="a peer at {peer} went away in the middle of a collective",
        fix="read the log of the rank on {peer} first: the one that does not write this",
        proves_not="that it began there: it may itself have ended because of another",
        awaits=True,
        sample="node1:4242:4300 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by "
        "remote peer node2.local<41000>",
        source=_DOCUMENT,
    ),
    KnownMessage(
        key="Call to recv from",
        pattern=r"Call to recv from (?P<peer>[\w.:-]+)<(?P<port>\d+)> failed : (?:Connection reset by peer|"
        r"Broken pipe|Connection timed out)",
        rule="EXIT005",
        says="the peer at {peer}:{port} went away in the middle of a collective",
        fix="read the log of the rank on {peer} first: the one that does not write this",
        proves_not="that it began there: it may itself have ended because of another",
        awaits=True,
        sample="node2:811:920 [0] misc/socket.cc:49 NCCL WARN socketProgressOpt: Call to recv from "
        "10.0.0.7<45678> failed : Connection reset by peer",
        source=_DOCUMENT,
    ),
    KnownMessage(
        key=": Got completion",
        pattern=r"NET/IB ?: Got completion (?:from peer [\w.:-]+<\d+> )?with (?:status=|error )12\b",
        rule="EXIT005",
        says="a peer answered no more over InfiniBand (transport retries exceeded)",
        fix="read the logs of the ranks that do not write this; ibstat and the port counters of both hosts' "
        "HCAs: perfquery",
        proves_not="whether the peer ended or the link broke: the HCA sees both alike",
        sample="gpu-a:77:101 [3] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer "
        "10.1.1.3<37421> with status=12 opcode=0 len=0 vendor err 129 (Recv)",
        source=_DOCUMENT,
    ),
    KnownMessage(
        key=": got completion with error",
        pattern=r"\bmlx\d: (?P<host>[\w.-]{1,80}): got completion with error",
        rule="EXIT005",
        says="an InfiniBand card of {host} reports that a transfer failed: the peer ended, or the link broke",
        fix="on the hosts of the job: ibstat; rdma link; dmesg -T | grep -i mlx5; then the logs of the ranks "
        "that do not write this: did one of them end first? NCCL_DEBUG=INFO names the peer",
        proves_not="whether the peer ended or the link broke: the card sees both alike",
        sample="mlx5: node7: got completion with error:",
        source="its wording from the source of rdma-core (providers/mlx5/cq.c)",
    ),
    KnownMessage(
        key="CUDA IPC handle",
        pattern=r"NCCL WARN [^\n]{0,40}(?:failed to open|Failed to open|Could not open) CUDA IPC "
        r"handle ?: ?"
        r"(?:\d+ )?(?P<what>(?!(?:device|invalid) )[^\n']{1,80})",
        rule="LOG010",
        says="NCCL could not reach the memory of another GPU of this host: {what}",
        fix="nvidia-smi topo -p2p r; nvidia-smi topo -m   # NCCL_P2P_DISABLE=1 goes through host "
        "memory instead; "
        "virtual machines need ACS and IOMMU set for peer access",
        explains=("EXIT002",),
        proves_not="that a GPU is broken: two that have no peer access say the same",
        sample="host1:909608:910337 [0] transport/p2p.cc:238 NCCL WARN failed to open CUDA IPC "
        "handle : 217 peer "
        "access is not supported between these two devices",
        source="from the source of NCCL 2.2 to 2.14 (transport/p2p.cc)",
    ),
    KnownMessage(
        key=": Got completion",
        pattern=r"NET/IB ?: Got completion (?:from peer [\w.:-]+<\d+> )?with (?:status=|error )"
        r"(?P<status>1|2|3|4|9|10|11)\b",
        rule="LOG010",
        says="a transfer over InfiniBand failed on this host's side or was refused (completion "
        "status {status}): "
        "memory that the HCA may not use",
        fix="NCCL_NET_GDR_LEVEL=0 for one run, then NCCL_IB_DISABLE=1: which of them helps? "
        "GPUDirect needs "
        "nvidia_peermem loaded (lsmod | grep peermem) and PCI ACS off; ulimit -l unlimited",
        proves_not="that a link is broken: that would be status 12",
        sample="node1:2201:2290 [3] transport/net_ib.cu:788 NCCL WARN NET/IB : Got completion with "
        "error 4, opcode "
        "1, len 21938, vendor err 81",
        source="from the source of NCCL 2.2 to 2.30 (transport/net_ib); the numbers are ibv_wc_status",
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
        source=_DOCUMENT,
    ),
    KnownMessage(
        key="Cuda failure",
        pattern=rf"Cuda failure (?:\d+ )?'(?!{_DRIVER}|out of memory')(?P<what>[^'\n]{{1,120}})'",
        rule="LOG006",
        says="CUDA failed below NCCL: {what}",
        fix="on that host: nvidia-smi; dmesg -T | grep -i xid",
        proves_not="that NCCL or the network is at fault",
        sample="node1:4242:4300 [0] enqueue.cc:90 NCCL WARN Cuda failure 'unspecified launch failure'",
        source=_DOCUMENT,
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
        key="Call to ibv_",
        pattern=rf"NCCL WARN Call to {_NO_LOCKED_MEMORY}",
        rule="LOG010",
        says="NCCL could not set up RDMA: the process may not lock enough memory, mostly",
        fix="ulimit -l   # inside the job, on that host: must be unlimited (Slurm: LimitMEMLOCK=infinity in "
        "slurmd.service; docker: --ulimit memlock=-1); NCCL_IB_DISABLE=1 for one run proves that it is RDMA",
        proves_not="that the limit is at fault: an HCA that is down looks the same",
        sample="node1:376586:377443 [4] ibvwrap.c:130 NCCL WARN Call to ibv_create_qp failed",
        source="from the source of NCCL 2.2 to 2.7 (misc/ibvwrap.cc)",
    ),
    KnownMessage(
        key="Call to ibv_modify_qp failed",
        pattern=r"Call to ibv_modify_qp failed with (?:error )?(?P<why>[^\n]{1,60})",
        rule="LOG010",
        says="NCCL could not connect two HCAs by RDMA: {why}",
        fix="NCCL_IB_DISABLE=1 for one run proves it; then, on both hosts: ibv_devinfo -v | grep -E "
        "'hca_id|state|link_layer|GID'   # RoCE needs NCCL_IB_GID_INDEX of an RoCE v2 address that the "
        "other reaches; NCCL_IB_HCA chooses the HCA",
        proves_not=_FIRST_USE,
        sample="node1:4242:4300 [0] misc/ibvwrap.cc:252 NCCL WARN Call to ibv_modify_qp failed with error "
        "Connection timed out errno 110",
        source="from the source of NCCL 2.8 to 2.30 (misc/ibvwrap.cc): `error TEXT`, later `error TEXT errno "
        "NUMBER`, since 2.24 `NUMBER TEXT, on dev ...`",
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
        source=_DOCUMENT,
    ),
    *map(_failed, ("System", "Internal", "UnhandledCuda")),
    KnownMessage(
        key="NCCL_DEBUG=INFO for details",
        pattern=r"NCCL [Ee]rror[^\n]{0,160}?(?P<what>unhandled (?:system|cuda) error|internal error) "
        r"\(run with NCCL_DEBUG=INFO for details\)(?![^\n]*\n[^\n]*nccl\w+: )",
        rule="LOG010",
        says="NCCL failed: {what}",
        fix=_INFO,
        proves_not=_FIRST_USE,
        sample="RuntimeError: NCCL Error 1: unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        source=_DOCUMENT,
    ),
)


_WARNING = re.compile(
    r"^(?P<line>[^\n]*? NCCL WARN (?P<what>[^\n]{4,300}))\n(?=[^\n]* NCCL INFO [\w./-]+:\d+ -> [1-9])",
    re.MULTILINE,
)
"""Matches a warning that made NCCL fail: it then writes each place that the error passes (`init.cc:10 -> "
"3`)."""
_OWN_PEER = re.compile(
    r"^[ \t]*(?:\[[^\]\n]{1,40}\]\S{0,40}[ \t]?)?(?P<host>[\w-]{1,64})(?:\.[\w.-]{0,200})?:\d+:\d+ "
    r"\[\d+\] [^\n]{0,80}NCCL WARN "
    r"[^\n]{0,60}"
    r"onnection closed by remote peer (?P<peer>(?P=host)\b[\w.:-]*)<",
    re.MULTILINE,
)
"""Matches a connection to a thread of NCCL on the writer's own host."""
MAX_SHOWN_WARNING = 160
"""Characters of an unknown warning that are shown."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = find_known_messages(exhibit, MESSAGES)
    if any(
        h.says == _SHM_FULL.says for h in heard
    ):  # the proof of what the next message leaves open
        heard = tuple(h for h in heard if h.rule != _SHM_FULL.rule or h.says == _SHM_FULL.says)
    heard = tuple(as_loopback(h, exhibit.text, _LOOPBACK) for h in heard)
    heard = _without_own_proxies(heard, exhibit.text) or _unknown_warning(exhibit)
    return Testimony(heard=heard) if heard else None


def _without_own_proxies(heard: tuple[Heard, ...], text: str) -> tuple[Heard, ...]:
    """Return the messages without connections to NCCL's threads on the writer's own host, if others say more.

    If a thread fails that serves the GPUs of a host, the ranks there lose the connection to it, too.
    """
    own_peers = {f"a peer at {m['peer']} went away" for m in _OWN_PEER.finditer(text)}
    foreign = tuple(
        h for h in heard if not any(h.says.startswith(text_begin) for text_begin in own_peers)
    )
    return foreign or heard


def _unknown_warning(exhibit: Exhibit) -> tuple[Heard, ...]:
    """Return the first warning after which NCCL failed, if no message of the table says more."""
    match = _WARNING.search(exhibit.text) if " NCCL WARN " in exhibit.text else None
    if match is None:
        return ()
    place = exhibit.place_of_line(exhibit.text.count("\n", 0, match.start()))
    line = match["line"].strip()
    return (
        Heard(
            rule="LOG010",
            says=f"NCCL failed: {match['what'].strip()[:MAX_SHOWN_WARNING]}",
            speakers=(Speaker(speaker_rank(line, exhibit.rank), line[:300], place, exhibit.pid),),
            fix=_INFO,
            proves_not=_FIRST_USE,
        ),
    )


READER = LogReader(read=read_log)
