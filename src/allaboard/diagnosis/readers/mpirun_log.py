"""What MPI's launchers write: who ended first, or why none was started.

Open MPI's mpirun (and its prterun), and Hydra, which starts the processes of MPICH, Intel MPI and MVAPICH2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.analysis.log_ends.post_traceback_output import training_over_line, trains_on_after
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Exit, Glimpse, Severity, Testimony
from allaboard.facts.signal_name import VALID_SIGNALS
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD

MIN_STEPS_AFTER = 2
"""Lines about loss or steps after a failed connection that show that the job found another way."""
_SIGNAL = re.compile(
    r"noticed that process rank (?P<rank>\d{1,7}) with PID (?P<pid>\d{1,9}) on node (?P<host>\S{1,255})"
    r"\s+exited on\s+signal (?P<signal>\d{1,2})\b"
)
_CODE = re.compile(
    r"The first process to do so was:\s+Process name: \[[^\n]{1,200},(?P<rank>\d{1,7})\]\s+"
    r"Exit code: +(?P<code>\d{1,3})"
)
_OPEN_MPI = "its wording from the source of Open MPI 2 to 5 (orte and prrte, help texts)"
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


_PASSING = (
    "mca_btl_tcp_endpoint_complete_connect",
    "inbound MPI TCP connection request from a peer",
)
"""Messages after which a job may find another way."""
MESSAGES = (
    KnownMessage(
        key="not enough slots available",
        pattern=r"not enough slots available in the system to satisfy the (?P<many>\d+)\s*slots",
        rule="JOIN001",
        says="mpirun has fewer slots than the {many} processes that were asked for; none was started",
        fix="mpirun -np {many} -H HOST:N,...   # N slots a host, which is 1 without :N; or slots=N in the "
        "hostfile; in a batch job ask for {many} tasks; --oversubscribe only to try it out",
        certainty=Certainty.CERTAIN,
        sample="There are not enough slots available in the system to satisfy the 16\nslots that were "
        "requested by "
        "the application:",
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
        says="mpirun was to place {many} processes one after the other, and its list has {nodes} "
        "entries; none "
        "was started",
        fix="mpirun -np {many} -H HOST:N,...   # N processes a host; or a hostfile with one line for each "
        "process; leave out --map-by seq (env | grep OMPI_MCA_rmaps)",
        certainty=Certainty.CERTAIN,
        sample="A sequential map was requested, but not enough node entries\nwere given to support "
        "the requested "
        "number of processes:\n\n  Num procs:  2\n  Num nodes:  1\n",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="as it could not find an executable",
        pattern=r"as it could not find an executable:\s+Executable: (?P<what>\S{1,255})\s+Node: "
        r"(?P<node>\S{1,255})",
        rule="JOIN001",
        says="mpirun could not start {what} on {node}: it is not there",
        fix="ssh {node} which {what}   # install it there under the same path, or give mpirun its "
        "full path",
        certainty=Certainty.CERTAIN,
        sample="mpirun was unable to launch the specified application as it could not find an "
        "executable:\n\n"
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
        "oob_tcp_if_include NETWORK/BITS, the network that both have; on one host: --mca btl "
        "self,vader,tcp "
        "(sm in Open MPI 5)",
        proves_not="whether an interface, a firewall or a component that was left out is at fault",
        sample="At least one pair of MPI processes are unable to reach each other for\nMPI communications. "
        " This "
        "means that no Open MPI device has indicated\nthat it can be used to communicate between these "
        "processes.\n\n  Process 1 ([[34405,1],2]) is on host: node-a\n  Process 2 ([[34405,1],0]) is on "
        "host: "
        "node-b\n  BTLs attempted: self tcp\n",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="from what appears to be a",
        pattern=r"Open MPI accepted a TCP connection from what appears to be a\s+another Open MPI process "
        r"but "
        r"cannot find a corresponding process\s+entry for that peer.{0,300}?Local host: "
        r"(?P<host>\S{1,255})",
        rule="NET006",
        says="Open MPI on {host} dropped the connection of a peer that came from an address it does not "
        "know: the "
        "hosts have several interfaces, or a network that Open MPI must not use (docker0, virbr0)",
        fix="ip -br address   # on all hosts; then mpirun --mca btl_tcp_if_include NETWORK/BITS --mca "
        "oob_tcp_if_include NETWORK/BITS   # the network that all share",
        proves_not="that the job hangs: the peer may come on another way",
        severity=Severity.WARNING,
        sample="WARNING: Open MPI accepted a TCP connection from what appears to be a\nanother Open MPI "
        "process "
        "but cannot find a corresponding process\nentry for that peer.\n\n  Local host: node-b\n  PID:     "
        "   "
        "4412\n",
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
        sample="Open MPI detected an inbound MPI TCP connection request from a peer\nthat appears "
        "to be part of "
        "this MPI job (i.e., it identified itself as\npart of this Open MPI job), but it is from an "
        "IP address "
        "that is\nunexpected.  This is highly unusual.\n\n  Local host:          node-b\n  Local "
        "PID:           "
        "8136\n  Peer hostname:       node-a ([[30832,1],1])\n  Source IP of socket: 10.10.10.8\n",
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
        "Open MPI job may now fail.\n\n  Local host: node-b\n  PID:        24783\n  Message:    "
        "connect() to "
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
        r"user in "
        r"file ess_singleton_module\.c",
        rule="LOG013",
        says="a program without mpirun calls MPI, and Open MPI does not find its daemon (orted, prted) in "
        "PATH",
        fix="which orted prted   # install openmpi-bin beside the library, and its folder into PATH; or "
        "start it "
        "by mpirun -np 1 python SCRIPT",
        certainty=Certainty.CERTAIN,
        sample="[[INVALID],INVALID] ORTE_ERROR_LOG: A system-required executable either could not be found "
        "or was "
        "not executable by this user in file ess_singleton_module.c at line 458",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="unable to complete a TCP connection",
        pattern=r"was unable to complete a TCP connection\s+to another process:\s+Local host: +"
        r"(?P<here>\S{1,255})\s+Remote host: +(?P<node>\S{1,255})",
        rule="NET006",
        says="Open MPI on {here} could not connect to {node}, on which a daemon of the job runs: mostly a "
        "firewall "
        "between them, or an address that only one of them has",
        fix="on {node}: sudo nft list ruleset; ip -br address   # open TCP ports above 1024 between the "
        "hosts, or "
        "mpirun --mca oob_tcp_if_include NETWORK/BITS --mca btl_tcp_if_include NETWORK/BITS",
        proves_not="that it is a firewall: a wrong interface looks the same",
        explains=("JOIN001", "EXIT010"),
        sample="A process or daemon was unable to complete a TCP connection\nto another process:\n  Local "
        "host:  "
        "  node-a\n  Remote host:   node-b\nThis is usually caused by a firewall on the remote host.",
        source=_OPEN_MPI,
    ),
)
TRANSPORT_MESSAGES = (
    KnownMessage(
        key="Transport retry count exceeded on ",
        pattern=r"Transport retry count exceeded on "
        r"(?P<device>[\w.-]{1,40}):(?P<port>\d+)/(?P<kind>IB|RoCE)",
        rule="NET006",
        says="UCX got no answer over port {port} of {device} ({kind}): the other end of that link ended, "
        "or the fabric lost its packets",
        fix="read the logs of the other ranks first: did one end before (memory)? Else, on both hosts: "
        "ibstat "
        "{device}; dmesg -T | grep -i mlx5; to try another way: UCX_TLS=tcp,sm,self",
        proves_not="which of the two it was: a peer that was killed looks like a link that is down",
        explains=("EXIT001", "EXIT003", "LOG012", "LOG011"),
        sample="[node-a:19546:0:19546] ib_mlx5_log.c:139  Transport retry count exceeded on mlx5_0:1/IB "
        "(synd 0x15 vend 0x81 hw_synd 0/0)",
        source=_UCX,
    ),
    KnownMessage(
        key="dest_addr=",
        pattern=r"UCX +ERROR +(?:tcp_ep [^\n]{0,120}?)?connect\(fd=\d+, "
        r"dest_addr=(?P<host>[\w.:\[\]]{1,60}):"
        r"(?P<port>\d+)\) failed: (?P<why>[A-Za-z ]{1,60})",
        rule="NET006",
        says="UCX could not connect to {host} port {port}: {why}",
        fix="ip -br address   # on all hosts: is {host} the address of a bridge (docker0, virbr0) "
        "that each "
        "host has for itself? Then UCX_NET_DEVICES=NAME (mpirun -x UCX_NET_DEVICES=NAME), an "
        "interface that "
        "the others reach; else: does the rank at {host} still run?",
        proves_not="whether a wrong interface, a firewall or a rank that has ended is at fault",
        explains=("EXIT003", "EXIT005", "LOG012"),
        sample="[1657786922.147458] [node-a:1207478:0]            sock.c:260  UCX  ERROR   connect(fd=41, "
        "dest_addr=172.17.0.1:45031) failed: Connection refused",
        source=_UCX,
    ),
    KnownMessage(
        key=" failed (ofi_",
        pattern=r"OFI (?P<call>[\w() ]{1,40}?) failed \(ofi_\w+\.[ch]:\d+:\w+:(?P<why>[^)\n]{1,80})\)",
        rule="LOG013",
        says="MPI found no network that its libfabric can use: {call} failed ({why})",
        fix="fi_info -l; fi_info   # in the job's environment: which providers it has. Then "
        "FI_PROVIDER=tcp "
        "(or one of these), on one host I_MPI_FABRICS=shm; Intel MPI: source its vars.sh, so that "
        "FI_PROVIDER_PATH is set",
        explains=("EXIT003", "LOG012"),
        sample="MPIDI_NM_mpi_init_hook(689): OFI addrinfo() failed "
        "(ofi_init.h:689:MPIDI_NM_mpi_init_hook:No "
        "data available)",
        source="its wording from the source of MPICH 3.3 to 4.3 and Intel MPI 2019 to 2021 (netmod/ofi)",
    ),
    KnownMessage(
        key="MPI_ERR_TRUNCATE",
        pattern=r"MPI_ERR_TRUNCATE: message truncated",
        rule="LOG003",
        says="a rank got a longer message of MPI than it expected: the ranks called different "
        "operations, or "
        "the same one with different sizes",
        fix="let all ranks make the same calls in the same order with the same sizes: look for what only "
        "some "
        "ranks do (if rank == 0), and for a receive whose buffer is smaller than what is sent",
        proves_not="which rank is wrong",
        explains=("EXIT003",),
        sample="r0 | MPI_Allreduce returned error code 15: b'MPI_ERR_TRUNCATE: message truncated' - "
        "aborting",
        source=_OPEN_MPI,
    ),
)
"""What UCX, libfabric and Open MPI itself write when messages do not arrive, or do not fit."""
_MPI_ABORT = re.compile(
    r"MPI_ABORT was invoked on rank (?P<rank>\d{1,7}) in communicator [^\n]{1,80}?\s+"
    r"(?:Proc: \S+\s+)?(?:with errorcode|Errorcode:) (?P<code>-?\d{1,9})"
)
_BLOCK = re.compile(
    r"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES[^\n]*\n"
    r"(?:=   (?:RANK (?P<rank>\d{1,7}) )?PID (?P<pid>\d{1,9}) RUNNING AT (?P<host>\S{1,255})[^\n]*\n)?"
    r"=   (?:EXIT CODE: (?P<code>\d{1,6})|(?:KILLED BY|EXIT) SIGNAL: (?P<signal>\d{1,2}))[^\n]*\n"
    r"(?:=[^\n]*\n){0,6}(?:\s*YOUR APPLICATION TERMINATED WITH THE EXIT STRING: [^\n(]{1,80}"
    r"\(signal (?P<named>\d{1,2})\))?"
)
_HYDRA_ABORT = re.compile(
    r"application called MPI_Abort\([^)\n]{1,80}, (?P<code>-?\d{1,9})\) - process (?P<rank>\d{1,7})"
)
_SHOWN_AS_SIGNAL = {4, 6, 7, 8, 9, 11, 13, 15}
"""Numbers that Hydra shows of a process that a signal ended: it prints the raw wait status, of which the
lowest seven bits are the signal, and the eighth tells of a core."""
_CORE_BIT = 0x80
_HYDRA = "its wording from the source of MPICH 3 to 4.3 and Intel MPI 2018 to 2021 (hydra)"
HYDRA_MESSAGES = (
    KnownMessage(
        key="unable to connect to proxy",
        pattern=r"unable to connect to (?:the )?proxy",
        rule="JOIN001",
        says="mpiexec could not connect to its proxy on another host; no rank was started there",
        fix="for host in $(cut -d: -f1 HOSTFILE); do ssh -o BatchMode=yes $host pgrep -af proxy; done   # "
        "does it run on each? Without -use-persistent, mpiexec starts it itself",
        proves_not="which host",
        sample="launch_helper (57): unable to connect to proxy",
        source="its wording from the source of MPICH2 1.1 to 1.5 (hydra)",
    ),
    KnownMessage(
        key="unable to connect from ",
        pattern=r"sock_connect \([^)\n]{1,80}\): unable to connect from \"(?P<node>[^\"\n]{1,255})\" to "
        r"\"(?P<other>[^\"\n]{1,255})\" \((?P<why>[^)\n]{1,80})\)",
        rule="JOIN001",
        says="mpiexec's proxy on {node} could not connect back to mpiexec on {other} ({why}); no rank "
        "was started on {node}",
        fix="ssh {node} getent hosts {other}   # the address that the other nodes reach? Then a firewall: "
        "mpiexec listens on any port (MPIR_CVAR_CH3_PORT_RANGE, I_MPI_PORT_RANGE=LOW:HIGH); "
        "-iface NAME chooses the network; inside Slurm: srun --mpi=pmi2 PROGRAM",
        proves_not="which is at fault: the name, the route and a firewall look the same",
        certainty=Certainty.CERTAIN,
        explains=("EXIT003", "LOG012"),
        sample="[proxy:0:1@node-b] HYDU_sock_connect (utils/sock/sock.c:145): unable to connect from "
        '"node-b" to "node-a" (Connection refused)',
        source=_HYDRA,
    ),
    KnownMessage(
        key="_proxy on ",
        pattern=r"[Uu]nable to run (?:bstrap_|pmi_)?proxy on (?P<node>[\w.:-]{1,255})"
        r"(?: \(pid \d+, exit code (?P<code>\d+)\))?",
        rule="JOIN001",
        says="mpiexec could not start its proxy on {node}; no rank was started there",
        fix="ssh -o BatchMode=yes {node} which mpiexec hydra_bstrap_proxy   # without a password, as the "
        "same "
        "user; in a job: -bootstrap slurm (or pbsdsh, lsf); in one container: I_MPI_HYDRA_BOOTSTRAP=fork",
        proves_not="whether ssh, a missing file or the host is at fault",
        certainty=Certainty.CERTAIN,
        sample="[mpiexec@node-a] check_exit_codes (../hydra_demux_poll.c:117): unable to run "
        "bstrap_proxy on "
        "node-b (pid 12608, exit code 256)",
        source=_HYDRA,
    ),
    KnownMessage(
        key="run proxy on ",
        pattern=r"[Uu]nable to run proxy on (?P<node>[\w.:-]{1,255})",
        rule="JOIN001",
        says="mpiexec could not start its proxy on {node}; no rank was started there",
        fix="ssh -o BatchMode=yes {node} which mpiexec   # without a password, as the same user; in a job: "
        "-bootstrap slurm (or pbsdsh, lsf)",
        proves_not="whether ssh, a missing file or the host is at fault",
        certainty=Certainty.CERTAIN,
        sample="[mpiexec@node-a] check_exit_codes (../hydra_demux_poll.c:114): unable to run proxy "
        "on node-b "
        "(pid 39814)",
        source=_HYDRA,
    ),
    KnownMessage(
        key="unrecognized argument ",
        pattern=r"\[mpiexec@(?P<node>[^\]\s]{1,255})\] match_arg \([^\n]{1,80}\): unrecognized argument "
        r"(?P<what>[\w-]{1,80})",
        rule="LOG013",
        says="mpiexec does not know the option --{what}: this mpirun is MPICH's or Intel's, and such "
        "options are "
        "mostly Open MPI's",
        fix="mpirun --version   # leave --{what} out, or put the mpirun of Open MPI first in PATH: it must "
        "be of "
        "the MPI that mpi4py or Horovod was built with",
        certainty=Certainty.CERTAIN,
        explains=("EXIT003",),
        sample="[mpiexec@node-a] match_arg (./utils/args/args.c:122): unrecognized argument bind-to",
        source=_HYDRA,
    ),
    KnownMessage(
        key="HYDT_topo_bind",
        pattern=r"@(?P<node>[^\]\s]{1,255})\] HYDT_topo_bind \([^)\n]{1,80}\): (?P<why>[^\n]{1,120})"
        r"(?=.{0,400}?bind process failed)",
        rule="JOIN001",
        says="mpiexec could not bind its processes to cores on {node} ({why}); no rank was started there",
        fix="mpiexec -bind-to none -n N PROGRAM   # this build of MPICH cannot bind; or one with hwloc: "
        "mpiexec -info",
        certainty=Certainty.CERTAIN,
        explains=("EXIT003", "LOG012"),
        sample="[proxy:0:0@node-b] HYDT_topo_bind (tools/topo/topo.c:89): no topology library available\n"
        "[proxy:0:0@node-b] HYDU_create_process (utils/launch/launch.c:66): bind process failed",
        source=_HYDRA,
    ),
    KnownMessage(
        key="execvp error on file ",
        pattern=r"execvp error on file (?P<what>\S{1,255}) \((?P<why>[^)\n]{1,80})\)",
        rule="JOIN001",
        says="mpiexec could not start {what} on a host: {why}",
        fix="which {what}   # on every host, in a shell without a login: the same path on all, or give "
        "mpiexec "
        "the full path",
        certainty=Certainty.CERTAIN,
        sample="[proxy:0:1@node-b] HYDU_create_process (utils/launch/launch.c:75): execvp error on file "
        "python3 (No such file or directory)",
        source=_HYDRA,
    ),
    KnownMessage(
        key="gethostbyname failed, ",
        pattern=r"gethostbyname failed, (?P<name>[\w.-]{1,255}) \(errno \d+\)",
        rule="NET001",
        says="a process could not resolve {name}, the name of its own host, in MPI_Init",
        fix="getent hosts {name}   # on that host; without output: add its address and {name} to "
        "/etc/hosts, in "
        "a container: --hostname, --add-host",
        certainty=Certainty.CERTAIN,
        explains=("LOG011", "LOG012"),
        sample="MPID_nem_tcp_init(379).............: gethostbyname failed, node-a (errno 1)",
        source="its wording from the source of MPICH 3 (ch3/nemesis/tcp)",
    ),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    glimpses: list[Glimpse] = []
    for match in _SIGNAL.finditer(text):
        if int(match["signal"]) in VALID_SIGNALS:
            line = " ".join(match[0].split())
            end = Exit(ended_at=0.0, signal=int(match["signal"]), last_line=line)
            glimpses.append(
                Glimpse(
                    origin=exhibit.place_of_line(text.count("\n", 0, match.start())),
                    rank=int(match["rank"]),
                    pid=int(match["pid"]),
                    host=match["host"],
                    exit=end,
                )
            )
    # A traceback that names no rank is of this process: its exit code tells nothing more.
    if TRACEBACK_HEAD not in text:
        for match in (*_CODE.finditer(text), *_MPI_ABORT.finditer(text)):
            place = exhibit.place_of_line(text.count("\n", 0, match.start()))
            end = Exit(ended_at=0.0, code=int(match["code"]) & 0xFF or 1)
            glimpses.append(Glimpse(origin=place, rank=int(match["rank"]), exit=end))
    glimpses.extend(_ends_of_hydra(exhibit))
    messages = [m for m in MESSAGES if m.key not in _PASSING or not _has_trained_after(text, m.key)]
    heard = find_known_messages(exhibit, (*messages, *TRANSPORT_MESSAGES, *HYDRA_MESSAGES))
    return Testimony(heard=heard, glimpses=tuple(glimpses[:1000])) if heard or glimpses else None


def _has_trained_after(text: str, key: str) -> bool:
    return trains_on_after(text, key, MIN_STEPS_AFTER) or bool(training_over_line(text))


def _ends_of_hydra(exhibit: Exhibit) -> Iterator[Glimpse]:
    text = exhibit.text
    # A traceback that names no rank is of the process that ended: its exit code tells nothing more.
    has_traceback = TRACEBACK_HEAD in text
    for match in _BLOCK.finditer(text):
        code, ended_by = _decode(match)
        if ended_by is None and has_traceback:
            continue
        line = " ".join(match[0].replace("=   ", "").split())[:300]
        yield Glimpse(
            origin=exhibit.place_of_line(text.count("\n", 0, match.start())),
            rank=int(match["rank"] or -1),
            pid=int(match["pid"] or 0),
            host=match["host"] or "",
            exit=Exit(ended_at=0.0, code=code, signal=ended_by, last_line=line),
        )
    for match in () if has_traceback else _HYDRA_ABORT.finditer(text):
        yield Glimpse(
            origin=exhibit.place_of_line(text.count("\n", 0, match.start())),
            rank=int(match["rank"]),
            exit=Exit(ended_at=0.0, code=int(match["code"]) or 1, last_line=match[0]),
        )


def _decode(match: re.Match[str]) -> tuple[int | None, int | None]:
    """Return the exit code, or the signal, of a process that Hydra reports."""
    named = match["signal"] or match["named"]
    status = int(match["code"] or 0)
    number = status & ~_CORE_BIT
    if status and number in _SHOWN_AS_SIGNAL:
        return None, number
    if named and int(named) in VALID_SIGNALS:
        return None, int(named)
    return status, None


READER = LogReader(read=read_log)
