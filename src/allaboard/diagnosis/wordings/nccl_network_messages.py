"""Known messages of NCCL about its connections: sockets, InfiniBand, libfabric.

Most samples are from NCCL's documents and source. What says so was recorded on one H200, with two ranks over
sockets: no InfiniBand, and no libfabric.
"""

from __future__ import annotations

from itertools import starmap

from allaboard.analysis.log_messages import KnownMessage

RECORDED = "recorded with NCCL 2.28.9 (PyTorch 2.11) on one H200, two ranks over sockets"
NOT_RECORDED = "from NCCL's source and documents, not recorded: it needs GPUs"
DEBUG_FIX = (
    "run once with NCCL_DEBUG=INFO: its lines before this one tell on which host, and with which "
    "device"
)
FIRST_USE_DOUBT = "that the line of the traceback is at fault: NCCL failed where it was first used"
_NO_LOCKED_MEMORY = r"ibv_(?:create_(?:qp|cq)|alloc_pd|reg_mr\w*) failed\s*(?:\n|$)"
"""Calls that lock memory, as NCCL before 2.8 writes them: without the error."""


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
    explains=("LOG001", "LOG010"),
    sample="node1:14508:15205 [0] transport/net_ib.cc:651 NCCL WARN NET/IB : collective mismatch error local "
    "size 348160 remote 32768 addr 7fb47b011000 rkey baa8 seq 5a/5a",
    source="its wording from the source of NCCL 2.4 to 2.27 (net_ib.cc, net_socket.cc); that of sockets was "
    "recorded with 2.28.9",
)
_MLX5_HOSTS = (
    (r"\bmlx\d: (?!host_unknown)(?P<host>[\w.-]{1,80})", "{host}", "mlx5: node7"),
    (
        r"\bip=(?P<host>[\w.:]{1,80})\) mlx\d: host_unknown",
        "{host}",
        "(Actor pid=7, ip=10.0.0.7) mlx5: host_unknown",
    ),
    (r"(?<!\) )\bmlx\d: host_unknown", "the host that writes it", "mlx5: host_unknown"),
)
"""Beginnings of the message by whether the card knows its host's name, the host, and samples."""


def _transfer_failed(pattern: str, host: str, sample: str) -> KnownMessage:
    """Return the message of an InfiniBand card about a transfer, by how the log names its host."""
    return KnownMessage(
        key=": got completion with error",
        pattern=f"{pattern}: got completion with error",
        rule="EXIT005",
        says=f"an InfiniBand card of {host} reports that a transfer failed: the peer ended, or the link "
        "broke",
        fix="on the hosts of the job: ibstat; rdma link; dmesg -T | grep -i mlx5; then the logs of the ranks "
        "that do not write this: did one of them end first? NCCL_DEBUG=INFO names the peer",
        proves_not="whether the peer ended or the link broke: the card sees both alike",
        sample=f"{sample}: got completion with error:",
        source="its wording from the source of rdma-core (providers/mlx5/cq.c)",
    )


NETWORK_MESSAGES = (
    _SIZES_DIFFER,
    KnownMessage(
        key="NET/OFI",
        pattern=r"NCCL WARN NET/OFI (?P<what>Couldn't find any optimal provider|Failed to initialize \w+ "
        r"protocol"
        r"|No (?:eligible|matching) providers?[^\n]{0,80}|fi_getinfo[^\n]{0,80}"
        r"|(?:Couldn't|Could not|Unable to|Failed to) (?:open|create|bind|enable) (?:an? |the )?(?:AV|CQ|EP"
        r"|EQ|address vector|completion queue|endpoint|domain|fabric|rail)\b[^\n]{0,120}"
        r"|Creating (?:new )?(?:endpoint|domain|rail)[^\n]{1,80} failed[^\n]{0,60}"
        r"|(?:fi_\w+|Initialization of[^\n]{1,60}) failed[^\n]{0,80})",
        rule="LOG005",
        says="NCCL's plugin for AWS could not use a network of its own (EFA): {what}",
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
        "the security group must allow all traffic to and from itself, in both directions; fi_info -p efa",
        proves_not="whether the peer ended or the network refused it",
        sample="algo-1:127:305 [0] ofi_process_cq:1033 NCCL WARN NET/OFI Request 0x7f9a completed with "
        "error. RC: 21. Error: unknown error. Completed length: 0, Request: { dev: 0 }",
        source="from users' reports of aws-ofi-nccl 1.0 to 1.16",
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
    KnownMessage(
        key="Call to ibv_reg_",
        pattern=r"NCCL WARN [^\n]{0,40}Call to (?P<call>ibv_reg_\w*mr\w*) failed(?: with error)? ?:? ?"
        r"(?:\d+ )?(?P<why>(?!Cannot allocate)[A-Z][^\n]{2,60})",
        rule="LOG010",
        says="NCCL could not register memory with the RDMA card ({call}: {why}): memory of the GPU that the "
        "card may not use, or of a kind that this driver does not know",
        fix="NCCL_NET_GDR_LEVEL=0 for one run, then NCCL_DMABUF_ENABLE=0, then NCCL_IB_DISABLE=1: which of "
        "them helps? GPUDirect needs nvidia_peermem (lsmod | grep peermem); PYTORCH_CUDA_ALLOC_CONF without "
        "expandable_segments; ulimit -l unlimited",
        proves_not="that a link is broken: nothing was sent yet",
        sample="node1:1458548:1480527 [0] misc/ibvwrap.cc:182 NCCL WARN Call to ibv_reg_mr_iova2 failed with "
        "error Invalid argument",
        source="from the source of NCCL 2.4 to 2.30 (misc/ibvwrap.cc)",
    ),
    _no_interface(
        "no socket interface found",
        r"(?:Bootstrap|NET/Socket) : no socket interface found",
        "bootstrap.cc:114 NCCL WARN Bootstrap : no socket interface found",
        RECORDED,
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
        source=NOT_RECORDED,
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
        sample="vm:1610:1906 [0] misc/socket.cc:72 NCCL WARN socketProgress: Connection closed by remote "
        "peer localhost<44804>",
        source=RECORDED,
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
        source=NOT_RECORDED,
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
        source=NOT_RECORDED,
    ),
    KnownMessage(
        key=": Got completion",
        pattern=r"NET/IBP? ?: ?Got completion from peer (?P<peer>[\w.:-]+)<\d+> with (?:status=|error )5\b",
        rule="EXIT005",
        says="a transfer to the peer at {peer} was given up: the connection to it had failed before, or it "
        "ended",
        fix="read the log of the rank at {peer}, and the other ranks': who ended or lost its link first "
        "(status 12 names a link)? On both hosts: ibstat; rdma link; perfquery",
        proves_not="which side failed: the card flushes what was under way",
        sample="gpu-a:77:101 [3] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer "
        "10.1.1.3<37421> with error 5, opcode 48, len 32710, vendor err 249",
        source=NOT_RECORDED,
    ),
    *starmap(_transfer_failed, _MLX5_HOSTS),
    KnownMessage(
        key=": Got completion",
        pattern=r"NET/IB ?: Got completion (?:from peer [\w.:-]+<\d+> )?with (?:status=|error )"
        r"(?P<status>1|2|3|4|9|10|11)\b",
        rule="LOG010",
        says="a transfer over InfiniBand failed on this host's side or was refused (completion status "
        "{status}): memory that the HCA may not use",
        fix="NCCL_NET_GDR_LEVEL=0 for one run, then NCCL_IB_DISABLE=1: which of them helps? GPUDirect needs "
        "nvidia_peermem loaded (lsmod | grep peermem) and PCI ACS off; ulimit -l unlimited",
        proves_not="that a link is broken: that would be status 12",
        sample="node1:2201:2290 [3] transport/net_ib.cu:788 NCCL WARN NET/IB : Got completion with error 4, "
        "opcode 1, len 21938, vendor err 81",
        source="from the source of NCCL 2.2 to 2.30 (transport/net_ib); the numbers are ibv_wc_status",
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
        proves_not=FIRST_USE_DOUBT,
        sample="node1:4242:4300 [0] misc/ibvwrap.cc:252 NCCL WARN Call to ibv_modify_qp failed with error "
        "Connection timed out errno 110",
        source="from the source of NCCL 2.8 to 2.30 (misc/ibvwrap.cc): `error TEXT`, later `error TEXT errno "
        "NUMBER`, since 2.24 `NUMBER TEXT, on dev ...`",
    ),
)
