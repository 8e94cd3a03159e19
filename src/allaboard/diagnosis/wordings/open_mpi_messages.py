"""Known messages of Open MPI, its launcher and the transports below it."""

from __future__ import annotations

import re

from allaboard.analysis.log_messages import KnownMessage
from allaboard.facts import Certainty, Severity

MPI_ABORT = re.compile(
    r"MPI_ABORT was invoked on rank (?P<rank>\d{1,7}) in communicator [^\n]{1,80}?\s+"
    r"(?:Proc: [^\n]{1,120}\s+)?(?:with errorcode|Errorcode:) (?P<code>-?\d{1,10})"
)
"""Matches the text about a rank that ended the whole job."""
_OPEN_MPI = "its wording from the source of Open MPI 2 to 5 (orte and prrte, help texts)"
LINK_WORDS = ("the InfiniBand link from", "the adapter refused what")
"""Begin what is said of one link of InfiniBand."""
_UCX = "its wording from the source of UCX 1.6 to 1.17 (uct/ib/mlx5, ucs/sys/sock.c)"


def _unreached_peer(key: str, pattern: str, sample: str) -> KnownMessage:
    """Return one wording of a process of Open MPI that cannot connect to a peer."""
    return KnownMessage(
        key=key,
        pattern=pattern,
        rule="NET006",
        says="Open MPI could not connect to a peer at {address}: {why}",
        fix="ip -br address   # on all hosts: is {address} one that the others reach, or that of a bridge "
        "(virbr0, docker0) or a link-local one? Then mpirun --mca btl_tcp_if_include NETWORK/BITS --mca "
        "oob_tcp_if_include NETWORK/BITS; else a firewall",
        proves_not="that the job hangs: Open MPI tries the peer's other addresses, too",
        explains=("LOG012",),
        sample=sample,
        source=_OPEN_MPI,
    )


OPEN_MPI_MESSAGES = (
    KnownMessage(
        key="not enough slots available",
        pattern=r"not enough slots available in the system to satisfy the (?P<many>\d+)\s*slots",
        rule="JOIN001",
        says="mpirun has fewer slots than the {many} processes that were asked for; none was started",
        fix="mpirun -np {many} -H HOST:N,...   # N slots a host, which is 1 without :N; or slots=N in the "
        "hostfile; in a batch job ask for {many} tasks; --oversubscribe only to try it out",
        certainty=Certainty.CERTAIN,
        sample="There are not enough slots available in the system to satisfy the 16\nslots that were "
        "requested by the application:",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="already filled",
        pattern=r"All nodes which are allocated for this job are already filled",
        rule="JOIN001",
        says="mpirun has fewer slots than processes that were asked for; none was started",
        fix="mpirun -np N -H HOST:N,...   # N slots a host, which is 1 without :N; or slots=N in the "
        "hostfile",
        certainty=Certainty.CERTAIN,
        sample="All nodes which are allocated for this job are already filled.",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="not enough node entries",
        pattern=r"not enough node entries\s+were given.{0,200}?Num procs: +(?P<many>\d+)\s+Num nodes: +"
        r"(?P<nodes>\d+)",
        rule="JOIN001",
        says="mpirun was to place {many} processes one after the other, and its list has {nodes} entries; "
        "none was started",
        fix="mpirun -np {many} -H HOST:N,...   # N processes a host; or a hostfile with one line for each "
        "process; leave out --map-by seq (env | grep OMPI_MCA_rmaps)",
        certainty=Certainty.CERTAIN,
        sample="A sequential map was requested, but not enough node entries\nwere given to support the "
        "requested number of processes:\n\n  Num procs:  2\n  Num nodes:  1\n",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="as it could not find an executable",
        pattern=r"as it could not find an executable:\s+Executable: (?P<what>\S{1,255})\s+Node: "
        r"(?P<node>\S{1,255})",
        rule="JOIN001",
        says="mpirun could not start {what} on {node}: it is not there",
        fix="ssh {node} which {what}   # install it there under the same path, or give mpirun its full path",
        certainty=Certainty.CERTAIN,
        sample="mpirun was unable to launch the specified application as it could not find an executable:\n\n"
        "Executable: python3\nNode: node-b\n",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="pair of MPI processes are unable to reach each other",
        pattern=r"pair of MPI processes are unable to reach each other for\s+MPI communications\..{0,600}?"
        r"Process 1 \(\[\S{1,60},(?P<one>\d+)\]\) is on host: (?P<host>\S+)\s+"
        r"Process 2 \(\[\S{1,60},(?P<two>\d+)\]\) is on host: (?P<other>\S+)\s+"
        r"BTLs attempted: (?P<ways>[\w ]{1,80})",
        rule="NET006",
        says="Open MPI found no way between rank {one} on {host} and rank {two} on {other} (it tried: "
        "{ways})",
        fix="ip -br address   # on both hosts; then mpirun --mca btl_tcp_if_include NETWORK/BITS --mca "
        "oob_tcp_if_include NETWORK/BITS, the network that both have; on one host: --mca btl self,vader,tcp "
        "(sm in Open MPI 5)",
        proves_not="whether an interface, a firewall or a component that was left out is at fault",
        sample="At least one pair of MPI processes are unable to reach each other for\nMPI communications.  "
        "This means that no Open MPI device has indicated\nthat it can be used to communicate between these "
        "processes.\n\n  Process 1 ([[34405,1],2]) is on host: node-a\n  Process 2 ([[34405,1],0]) is on "
        "host: node-b\n  BTLs attempted: self tcp\n",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="from what appears to be a",
        pattern=r"Open MPI accepted a TCP connection from what appears to be a\s+another Open MPI process "
        r"but cannot find a corresponding process\s+entry for that peer.{0,300}?Local host: "
        r"(?P<host>\S{1,255})",
        rule="NET006",
        says="Open MPI on {host} dropped the connection of a peer that came from an address it does not "
        "know: the hosts have several interfaces, or a network that Open MPI must not use (docker0, virbr0)",
        fix="ip -br address   # on all hosts; then mpirun --mca btl_tcp_if_include NETWORK/BITS --mca "
        "oob_tcp_if_include NETWORK/BITS   # the network that all share",
        proves_not="that the job hangs: the peer may come on another way",
        severity=Severity.WARNING,
        sample="WARNING: Open MPI accepted a TCP connection from what appears to be a\nanother Open MPI "
        "process but cannot find a corresponding process\nentry for that peer.\n\n  Local host: node-b\n  "
        "PID:        4412\n",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="inbound MPI TCP connection request from a peer",
        pattern=r"inbound MPI TCP connection request from a peer.{0,400}?unexpected\..{0,400}?Local host: +"
        r"(?P<host>\S{1,255}).{0,300}?Source IP of socket: (?P<address>\S{1,60})",
        rule="NET006",
        says="Open MPI on {host} dropped the connection of a peer that came from {address}, an address it "
        "does not know: the hosts have several interfaces, or addresses are translated on the way "
        "(pods, NAT)",
        fix="ip -br address   # on all hosts; then mpirun --mca btl_tcp_if_include NETWORK/BITS --mca "
        "oob_tcp_if_include NETWORK/BITS   # the network that all share and that is not translated",
        proves_not="that the job hangs: the peer may come on another way",
        severity=Severity.WARNING,
        sample="Open MPI detected an inbound MPI TCP connection request from a peer\nthat appears to be part "
        "of this MPI job (i.e., it identified itself as\npart of this Open MPI job), but it is from an IP "
        "address that is\nunexpected.  This is highly unusual.\n\n  Local host:          node-b\n  Local "
        "PID:           8136\n  Peer hostname:       node-a ([[30832,1],1])\n  Source IP of socket: "
        "10.10.10.8\n",
        source=_OPEN_MPI,
    ),
    _unreached_peer(
        "mca_btl_tcp_endpoint_complete_connect",
        r"\[btl_tcp_endpoint\.c:\d+:mca_btl_tcp_endpoint_\w+\] connect\(\) to (?P<address>[\w.:]{1,60}?)"
        r"(?: port \d+|:\d+)? failed: (?P<why>[A-Z][A-Za-z ]{1,60})",
        "[node-b][[32355,1],2][btl_tcp_endpoint.c:796:mca_btl_tcp_endpoint_complete_connect] connect() to "
        "192.0.2.1 failed: Connection refused (111)",
    ),
    _unreached_peer(
        "Open MPI failed to TCP connect to a peer MPI process",
        r"Open MPI failed to TCP connect to a peer MPI process\..{0,400}?Message: +connect\(\) to "
        r"(?P<address>[\w.:]{1,60}?):\d+ failed\s+Error: +(?P<why>[A-Z][A-Za-z ]{1,60})",
        "WARNING: Open MPI failed to TCP connect to a peer MPI process.  This\nshould not happen.\n\nYour "
        "Open MPI job may now fail.\n\n  Local host: node-b\n  PID:        24783\n  Message:    connect() to "
        "192.0.2.13:1026 failed\n  Error:      No route to host (113)\n",
    ),
    KnownMessage(
        key=" function was called ",
        pattern=r"\*\*\* The (?P<call>MPI_\w{1,40})\(\) function was called (?P<when>before MPI_INIT was "
        r"invoked|after MPI_FINALIZE was invoked)",
        rule="LOG013",
        says="a process called {call} {when}, and Open MPI ended the job",
        fix="from mpi4py import MPI   # first, in the process that calls it: the import runs "
        "MPI_Init, at its "
        "exit MPI_Finalize; with Horovod hvd.init() before anything else of it; none of them before a fork",
        certainty=Certainty.CERTAIN,
        explains=("EXIT003", "LOG012"),
        sample="*** The MPI_Comm_rank() function was called before MPI_INIT was invoked.\n*** This is "
        "disallowed by the MPI standard.",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="in file ess_singleton_module.c",
        pattern=r"A system-required executable either could not be found or was not executable by this "
        r"user in file ess_singleton_module\.c",
        rule="LOG013",
        says="a program without mpirun calls MPI, and Open MPI does not find its daemon (orted, prted) in "
        "PATH",
        fix="which orted prted   # install openmpi-bin beside the library, and its folder into PATH; or "
        "start it by mpirun -np 1 python SCRIPT",
        certainty=Certainty.CERTAIN,
        sample="[[INVALID],INVALID] ORTE_ERROR_LOG: A system-required executable either could not be found "
        "or was not executable by this user in file ess_singleton_module.c at line 458",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="unable to complete a TCP connection",
        pattern=r"was unable to complete a TCP connection\s+to another process:\s+Local host: +"
        r"(?P<here>\S{1,255})\s+Remote host: +(?P<node>\S{1,255})",
        rule="NET006",
        says="Open MPI on {here} could not connect to {node}, on which a daemon of the job runs: mostly a "
        "firewall between them, or an address that only one of them has",
        fix="on {node}: sudo nft list ruleset; ip -br address   # open TCP ports above 1024 between the "
        "hosts, or mpirun --mca oob_tcp_if_include NETWORK/BITS --mca btl_tcp_if_include NETWORK/BITS",
        proves_not="that it is a firewall: a wrong interface looks the same",
        explains=("JOIN001", "EXIT010"),
        sample="A process or daemon was unable to complete a TCP connection\nto another process:\n  Local "
        "host:    node-a\n  Remote host:   node-b\nThis is usually caused by a firewall on the remote host.",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="MPI communication peer process has unexpectedly disconnected",
        pattern=r"MPI communication peer process has unexpectedly disconnected\..{0,900}?Local host: +"
        r"(?P<here>\S{1,255}).{0,120}?Peer host: +(?P<peer>\S{1,255})",
        rule="EXIT005",
        says="a process on {peer} went away while a process on {here} was connected to it (Open MPI)",
        fix="read what the ranks on {peer} wrote before (mpirun --tag-output names each line's rank); on "
        "{peer}: dmesg -T | grep -iE 'kill|segfault|oom'",
        proves_not="which rank on {peer}, nor that it began there: it may have ended because of another",
        explains=("LOG012",),
        sample="An MPI communication peer process has unexpectedly disconnected.  This\nusually indicates a "
        "failure in the peer process (e.g., a crash or\notherwise exiting without calling MPI_FINALIZE "
        "first).\n\n  Local host: node-a\n  Local PID:  7720\n  Peer host:  node-b\n",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="*** An error occurred in ",
        pattern=r"\*\*\* An error occurred in (?P<call>[Mm][Pp][Ii]\w{1,40})"
        r"(?:\s{1,4}[^\n]{0,60}\*\*\* reported by process \[\d+,(?P<rank>\d{1,7})\])?.{0,300}?"
        r"\*\*\* (?P<kind>MPI_ERR_(?!TRUNCATE|OTHER|INTERN)\w{2,40}): (?P<why>[^\n]{1,120})",
        rule="LOG013",
        says="{call} failed, and Open MPI ended the job: {why} ({kind})",
        fix="look at what the program gives to {call}: a rank, root, count or communicator that this job "
        "does not have? mpirun -np N must be the size that the script reckons with; python -X faulthandler "
        "shows the line",
        explains=("EXIT003", "EXIT005", "LOG012"),
        sample="[node-a:06084] *** An error occurred in MPI_Send\n[node-a:06084] *** reported by process "
        "[1169620993,0]\n[node-a:06084] *** on communicator MPI_COMM_WORLD\n[node-a:06084] *** "
        "MPI_ERR_RANK: invalid rank",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="*** An error occurred in ",
        pattern=r"\*\*\* An error occurred in (?P<call>[Mm][Pp][Ii]\w{1,40})"
        r"(?:\s{1,4}[^\n]{0,60}\*\*\* reported by process \[\d+,(?P<rank>\d{1,7})\])?.{0,300}?"
        r"\*\*\* (?P<kind>MPI_ERR_(?:OTHER|INTERN)): (?P<why>[^\n]{1,120})",
        rule="LOG012",
        says="{call} failed inside Open MPI, which ended the job ({kind}: {why})",
        fix="read the logs of the other ranks first: did one end before, or was one started anew? Then the "
        "network: ip -br address; mpirun --mca btl_tcp_if_include NETWORK/BITS; tensors on GPUs: ompi_info "
        "--parsable --all | grep mpi_built_with_cuda_support:value",
        proves_not="that the rank that reports it is at fault: it may have lost a peer in this call",
        sample="[node-a:28492] *** An error occurred in MPI_Allreduce\n[node-a:28492] *** reported by "
        "process [635830273,3]\n[node-a:28492] *** on communicator MPI_COMM_WORLD\n[node-a:28492] *** "
        "MPI_ERR_INTERN: internal error",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="Local abort before MPI_INIT completed",
        pattern=r"\[(?P<host>[\w.-]{1,255}):(?P<pid>\d{1,9})\] Local abort before MPI_INIT completed",
        rule="LOG012",
        says="MPI could not start in a process on {host} (pid {pid})",
        fix="which -a mpirun; mpirun --version; python -c 'from mpi4py import MPI; "
        "print(MPI.Get_library_version())'   # on each host: is it one MPI, of which this mpirun is? "
        "Under Slurm: srun --mpi=list, srun --mpi=pmix; then the network: mpirun --mca btl_tcp_if_include "
        "NETWORK/BITS",
        proves_not="why: the block of help above it says more, where there is one",
        sample="[node-a:71142] Local abort before MPI_INIT completed completed successfully,\n but am not "
        "able to aggregate error messages, and not able to guarantee that all other processes\n were killed!",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="Signal code: Invalid permissions (2)",
        pattern=r"\[(?P<host>[\w.-]{1,255}):\d{1,9}\] Signal code: Invalid permissions \(2\)"
        r".{0,1000}?(?:libmpi|ompi_|mca_)",
        rule="LOG013",
        says="MPI crashed on {host} as it read memory that the CPU may not touch: mostly a "
        "tensor on a GPU, given to an MPI that was built without CUDA",
        fix="ompi_info --parsable --all | grep mpi_built_with_cuda_support:value   # false? Horovod: build "
        "it with HOROVOD_GPU_OPERATIONS=NCCL (horovodrun --check-build); else an MPI with CUDA, or the "
        "tensor on the CPU for the call",
        proves_not="that it was memory of a GPU: other memory of that kind looks the same",
        explains=("LOG011", "LOG012", "EXIT001"),
        sample="[node-a:02773] Signal: Segmentation fault (11)\n[node-a:02773] Signal code: Invalid "
        "permissions (2)\n[node-a:02773] Failing at address: 0x7f1246cb4a00\n[node-a:02773] [ 0] "
        "/usr/local/lib/libmpi.so.40(ompi_coll_base_allreduce_intra_recursivedoubling+0x1f4)[0x7f4d]",
        source="its wording from the source of Open MPI 2 to 5 (opal/util/stacktrace.c)",
    ),
)
TRANSPORT_MESSAGES = (
    KnownMessage(
        key="ibv_create_ah(",
        pattern=r"UCX +ERROR "
        r"+ibv_create_ah\([^)\n]{0,200}?dgid=(?:::ffff:)?(?P<peer>[\w.:]{2,60})[^)\n]{0,120}\)"
        r"[^\n]{0,60}? on (?P<device>\w{2,40}) failed: (?P<why>[^\n]{3,80})"
        r"(?:.{0,700}?Failed to resolve UCX endpoint for rank (?P<to>\d{1,7}))?",
        rule="NET006",
        says="UCX found no way from {device} to {peer} ({why}): the network of that adapter (RoCE or "
        "InfiniBand) does not reach rank {to} there",
        fix="ping -c 2 {peer}; ibv_devinfo -d {device} | grep -E 'state|link_layer|GID'   # from that "
        "host: is "
        "the port up, and in the same network as {peer}? UCX_NET_DEVICES={device}:1 or that of another "
        "adapter, UCX_IB_GID_INDEX of RoCE v2, on all hosts; UCX_TLS=tcp,sm,self for one run tells whether "
        "it "
        "is at fault",
        explains=("LOG012", "EXIT002", "EXIT005"),
        sample="[1695144496.484294] [node-a:103648:0] ib_device.c:1250 UCX ERROR ibv_create_ah(dlid=49152 "
        "sl=0 "
        "port=1 src_path_bits=0 dgid=::ffff:192.0.2.55 sgid_index=3 traffic_class=106) for UD verbs "
        "connect on "
        "bnxt_re0 failed: Connection timed out\n[node-a:103648] pml_ucx.c:472 Error: Failed to resolve UCX "
        "endpoint for rank 1",
        source=_UCX,
    ),
    KnownMessage(
        key="[btl_tcp_frag.c:",
        pattern=r"\[(?P<node>[\w.-]{1,255})\]\[\[\d+,\d+\],(?P<writer>\d+)\]\[btl_tcp_frag\.c:\d+:\w+\] "
        r"\w+: (?:readv|writev) failed: (?P<why>[A-Z][A-Za-z ]{1,60}[a-z])",
        rule="EXIT005",
        says="rank {writer} on {node} lost the connection to a peer (Open MPI: {why})",
        fix="read the logs of the other ranks: the one that does not write this ended first, mostly; its "
        "kernel's log: dmesg -T | grep -iE 'kill|segfault|oom'",
        proves_not="which peer it was, nor that it began there",
        sample="[node-a][[9702,1],1][btl_tcp_frag.c:237:mca_btl_tcp_frag_recv] mca_btl_tcp_frag_recv: readv "
        "failed: Connection reset by peer (104)",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="Transport retry count exceeded on ",
        pattern=r"Transport retry count exceeded on "
        r"(?P<device>[\w.-]{1,40}):(?P<port>\d+)/(?P<kind>IB|RoCE)",
        rule="NET006",
        says="UCX got no answer over port {port} of {device} ({kind}): the other end of that link ended, "
        "or the fabric lost its packets",
        fix="read the logs of the other ranks first: did one end before (memory)? Else, on both hosts: "
        "ibstat {device}; dmesg -T | grep -i mlx5; to try another way: UCX_TLS=tcp,sm,self",
        proves_not="which of the two it was: a peer that was killed looks like a link that is down",
        explains=("EXIT001", "EXIT003", "LOG012", "LOG011"),
        sample="[node-a:19546:0:19546] ib_mlx5_log.c:139  Transport retry count exceeded on mlx5_0:1/IB "
        "(synd 0x15 vend 0x81 hw_synd 0/0)",
        source=_UCX,
    ),
    KnownMessage(
        key=" transport to ",
        pattern=r"UCX +(?:ERROR|FATAL) +no (?P<kind>[\w /-]{3,60}) transport to (?P<peer>[^\n:]{1,80}): "
        r"(?P<why>[^\n]{1,160})",
        rule="NET006",
        says="UCX found no network for {kind} that both ends can use: {why}",
        fix="ucx_info -d | grep -E 'Transport|Device'; env | grep UCX_   # on both hosts: UCX_TLS and "
        "UCX_NET_DEVICES must leave a network that both have, and self,sm within a host; for one run: "
        "UCX_TLS=all, UCX_NET_DEVICES=all",
        explains=("EXIT003", "EXIT005", "LOG012"),
        sample="[1718000000.123456] [node-a:4242 :0]   select.c:722  UCX  ERROR no active messages transport "
        "to <no debug data>: self/memory - Destination is unreachable",
        source="its wording from the source of UCX 1.3 to 1.19 (ucp/wireup/select.c)",
    ),
    KnownMessage(
        key="dest_addr=",
        pattern=r"UCX +ERROR +(?:tcp_ep [^\n]{0,120}?)?connect\(fd=\d+, "
        r"dest_addr=(?P<host>[\w.:\[\]]{1,60}):(?P<port>\d+)\) failed: (?P<why>[A-Za-z ]{1,60})",
        rule="NET006",
        says="UCX could not connect to {host} port {port}: {why}",
        fix="ip -br address   # on all hosts: is {host} the address of a bridge (docker0, virbr0) that each "
        "host has for itself? Then UCX_NET_DEVICES=NAME (mpirun -x UCX_NET_DEVICES=NAME), an interface that "
        "the others reach; else: does the rank at {host} still run?",
        proves_not="whether a wrong interface, a firewall or a rank that has ended is at fault",
        explains=("EXIT003", "EXIT005", "LOG012"),
        sample="[1657786922.147458] [node-a:1207478:0]            sock.c:260  UCX  ERROR   connect(fd=41, "
        "dest_addr=172.17.0.1:45031) failed: Connection refused",
        source=_UCX,
    ),
    KnownMessage(
        key=" failed (ofi_",
        pattern=r"OFI (?P<call>[\w() ]{1,40}?) failed \(ofi_(?!events|send|recv|progress)\w+\.[ch]:\d+:\w+:"
        r"(?P<why>[^)\n]{1,80})\)",
        rule="LOG013",
        says="MPI found no network that its libfabric can use: {call} failed ({why})",
        fix="fi_info -l; fi_info   # in the job's environment: which providers it has. Then FI_PROVIDER=tcp "
        "(or one of these), on one host I_MPI_FABRICS=shm; Intel MPI: source its vars.sh, so that "
        "FI_PROVIDER_PATH is set",
        explains=("EXIT003", "LOG012"),
        sample="MPIDI_NM_mpi_init_hook(689): OFI addrinfo() failed (ofi_init.h:689:MPIDI_NM_mpi_init_hook:No "
        "data available)",
        source="its wording from the source of MPICH 3.3 to 4.3 and Intel MPI 2019 to 2021 (netmod/ofi)",
    ),
    KnownMessage(
        key="received unexpected process identifier",
        pattern=r"\[(?P<node>[^\]\s]{1,255})\]\[\[\d+,\d+\],\d+\]\[btl_tcp_endpoint\.c:\d+:\w{1,80}\] "
        r"received unexpected process identifier",
        rule="LOG013",
        says="{node} got Open MPI's connection of another rank than it expected there: two hosts, or two "
        "interfaces of one, answer at the same address (as those of containers do)",
        fix="ip -br address   # on each host; then mpirun --mca btl_tcp_if_include NAME (ib0, eth0: the "
        "network that all share), without docker0, virbr0 and lo; horovodrun --network-interface NAME",
        proves_not="that it hangs for this: Open MPI drops the connection, and may find another",
        sample="[node-b][[22157,1],4][btl_tcp_endpoint.c:626:mca_btl_tcp_endpoint_recv_connect_ack] received "
        "unexpected process identifier [[22157,1],7]",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="is failing to make progress on posting",
        pattern=r"(?:PE (?P<rank>\d{1,7}): )?MPICH WARNING: OFI is failing to make progress on posting a "
        r"(?P<what>\w+)",
        rule="LOG013",
        says="the network's queue of finished messages is full on a rank, so that MPI can post no {what}: "
        "it waits, and the job with it",
        fix="export FI_CXI_DEFAULT_CQ_SIZE=131072   # for all ranks; else FI_CXI_RX_MATCH_MODE=software, "
        "or fewer "
        "messages that are on their way at a time: wait for some of the requests before the next ones",
        proves_not="that it hangs for ever: MPI tries again",
        sample="PE 0: MPICH WARNING: OFI is failing to make progress on posting a receive. MPICH suspects "
        "a hang due to completion queue exhaustion.",
        source="its wording from the source of Cray MPICH 8.1, as users report it",
    ),
    KnownMessage(
        key="handle_wc] from ",
        pattern=r"handle_wc\] from (?P<here>\S{1,255}) to: (?P<there>\S{1,255})"
        r" error\s+polling [LH]\s?P CQ with status (?P<why>(?:RETRY EXCEEDED|RECEIVER NOT READY"
        r"|TRANSPORT RETRY|WORK REQUEST FLUSHED)[A-Z ]{0,40}?) ?status number",
        rule="NET006",
        says="the InfiniBand link from {here} to {there} lost messages ({why}): Open MPI sent again and "
        "again, without an answer",
        fix="on {here} and {there}: ibstat; perfquery -x; iblinkinfo | grep -i {there}   # errors, a slow "
        "link, a port that flaps? Did the process on {there} end before? UCX retries better: mpirun "
        "--mca pml ucx --mca btl ^openib",
        proves_not="which end or which switch between them it is: note whether one host is in all such "
        "messages",
        explains=("EXIT001", "EXIT003", "LOG012", "LOG011"),
        sample="[[44391,1],9][btl_openib_component.c:3690:handle_wc] from node-a to: node-b error "
        "polling LP CQ "
        "with status RETRY EXCEEDED ERROR status number 12 for wr_id 1f5dd30 opcode 32767  vendor error 129",
        source="its wording from the source of Open MPI 1.4 to 4.1 (btl_openib_component.c)",
    ),
    KnownMessage(
        key="handle_wc] from ",
        pattern=r"handle_wc\] from (?P<here>\S{1,255}) to: (?P<there>\S{1,255})"
        r" error\s+polling [LH]\s?P CQ with status (?P<why>(?:REMOTE|LOCAL)[A-Z ]{1,40}?) ?status number",
        rule="LOG013",
        says="the adapter refused what Open MPI's openib sent from {here} to {there} ({why})",
        fix="mpirun --mca pml ucx --mca osc ucx --mca btl ^openib   # openib is no longer kept, and "
        "fails so with "
        "one-sided calls, several threads and registered memory; one host alone: --mca btl self,vader",
        proves_not="that the hardware is sound: ibstat and perfquery -x on {here} show its errors",
        explains=("EXIT001", "EXIT003", "LOG012", "LOG011"),
        sample="[[27217,0],12][btl_openib_component.c:3556:handle_wc] from node-a to: node-a error "
        "polling LP CQ with status REMOTE ACCESS ERROR status number 10 for wr_id 19059c8 opcode 4  "
        "vendor error 136 qp_idx 3",
        source="its wording from the source of Open MPI 1.4 to 4.1 (btl_openib_component.c)",
    ),
    KnownMessage(
        key="essage truncated",
        pattern=r"(?:Abort\(\d+\) on node \d+ \(rank (?P<rank>\d{1,7}) in comm \d+\): )?"
        r"(?:Fatal error in \w+|Exception): Message truncated, error stack",
        rule="LOG003",
        says="a rank got a longer message of MPI than it expected: the ranks called different operations, or "
        "the same one with different sizes",
        fix="let all ranks make the same calls in the same order with the same sizes: look for what only "
        "some ranks do (if rank == 0), and for a receive whose buffer is smaller than what is sent",
        proves_not="which rank is wrong: the one that writes it only received",
        explains=("EXIT003", "LOG012", "LOG011"),
        sample="Fatal error in PMPI_Recv: Message truncated, error stack:\n"
        "MPIDI_CH3U_Request_unpack_uebuf(599): Message truncated; 1536 bytes received but buffer "
        "size is 1024",
        source="its wording from the source of MPICH 1.2 to 4.3 (errnames.txt: **truncate)",
    ),
    KnownMessage(
        key="MPI_ERR_TRUNCATE",
        pattern=r"MPI_ERR_TRUNCATE: message truncated",
        rule="LOG003",
        says="a rank got a longer message of MPI than it expected: the ranks called different operations, or "
        "the same one with different sizes",
        fix="let all ranks make the same calls in the same order with the same sizes: look for what only "
        "some ranks do (if rank == 0), and for a receive whose buffer is smaller than what is sent",
        proves_not="which rank is wrong",
        explains=("EXIT003",),
        sample="r0 | MPI_Allreduce returned error code 15: b'MPI_ERR_TRUNCATE: message truncated' - aborting",
        source=_OPEN_MPI,
    ),
)
"""What UCX, libfabric and Open MPI itself write when messages do not arrive, or do not fit."""
