"""Messages of NCCL: its WARN lines, and INFO lines under NCCL_DEBUG=INFO.

There was no GPU where this was written: every sample is from NCCL's documents and source.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Testimony

_DOCUMENT = "from NCCL's source and documents, not recorded: it needs GPUs"
_INFO = "run once with NCCL_DEBUG=INFO: its lines before this one tell on which host, and with which device"
_FIRST_USE = "that the line of the traceback is at fault: NCCL failed where it was first used"
_SHM = (
    "df -h /dev/shm; in a container give it more: docker run --shm-size=8g (or --ipc=host), in Kubernetes an "
    "emptyDir of medium Memory at /dev/shm"
)
_COVERED_ELSEWHERE = (
    r"onnect to|shared memory segment|Duplicate GPU|Cuda failure|closed by remote peer|Got completion|"
    r"Call to recv|no socket interface|No interface found"
)
"""Errors that other messages of this file recognise."""
_SHM_FULL = KnownMessage(
    key="No space left on device",
    pattern=r"(?:/dev/shm|shm\.h|shmutils|shm\.cc|shared memory|posix_fallocate|fallocate)[^\n]{0,160}"
    r"No space left on device",
    rule="RES004",
    says="/dev/shm is full: NCCL found no room for its shared memory",
    fix=_SHM,
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
        "[rank1]: Last error:\n[rank1]: Call to ibv_modify_qp failed with error Connection timed out",
        source=_DOCUMENT,
    )


MESSAGES = (
    _SHM_FULL,
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
        key="no socket interface found",
        pattern=r"(?:Bootstrap|NET/Socket) : no socket interface found",
        rule="LOG005",
        says="NCCL found no network interface to use",
        fix="compare NCCL_SOCKET_IFNAME with: ip -br address",
        sample="node1:4242:4300 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
        source=_DOCUMENT,
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
        pattern=r"(?:NCCL (?:WARN|INFO) [^\n]{0,80}?|socket\w{1,20}: )[Cc]onnect to "
        r"(?P<peer>[\w.:]+)<(?P<port>\d+)> "
        # What it tries again mostly succeeds: at the start not all listen yet.
        r"(?:failed|timed out)(?![^\n]{0,80}retrying)(?: : (?P<why>[^\n]{0,60}))?",
        rule="JOIN004",
        says="NCCL could not connect to {peer}, port {port}",
        fix="every rank must reach every other on all ports above 1024: nc -vz {peer} {port}; "
        "NCCL_SOCKET_IFNAME chooses the interface",
        proves_not="that the peer is gone: a firewall and an address of a wrong interface look the same",
        sample="node1:4242:4300 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to "
        "10.1.2.3<41000> failed : Connection refused",
        source=_DOCUMENT,
    ),
    KnownMessage(
        key="onnection closed by remote peer",
        pattern=r"[Cc]onnection closed by remote peer (?P<peer>[\w.:-]+)<(?P<port>\d+)>",
        rule="EXIT005",
        says="the peer at {peer}:{port} went away in the middle of a collective",
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
        key="NET/IB : Got completion",
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
        key="Cuda failure",
        pattern=r"Cuda failure (?:\d+ )?'(?P<what>[^'\n]{1,120})'",
        rule="LOG006",
        says="CUDA failed below NCCL: {what}",
        fix="on that host: nvidia-smi; dmesg -T | grep -i xid",
        proves_not="that NCCL or the network is at fault",
        sample="node1:4242:4300 [0] enqueue.cc:90 NCCL WARN Cuda failure 'out of memory'",
        source=_DOCUMENT,
    ),
    KnownMessage(
        key="shared memory segment",
        pattern=r"[Ee]rror (?:while |: )?(?:creating|attaching to|: )?\s*shared memory segment (?P<path>\S+)",
        rule="RES004",
        says="NCCL found no room for its shared memory ({path})",
        fix=_SHM,
        proves_not="that it is full: a path that cannot be written looks the same",
        sample="[rank0]: Error while creating shared memory segment /dev/shm/nccl-Lz7jQm (size 9637888)",
        source=_DOCUMENT,
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


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = find_known_messages(exhibit, MESSAGES)
    if any(
        h.says == _SHM_FULL.says for h in heard
    ):  # the proof of what the next message leaves open
        heard = tuple(h for h in heard if h.rule != _SHM_FULL.rule or h.says == _SHM_FULL.says)
    return Testimony(heard=heard) if heard else None


READER = LogReader(read=read_log)
