"""Known messages of Hydra, which starts the processes of MPICH, Intel MPI and MVAPICH2."""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage
from allaboard.facts import Certainty

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
        key="_init (",
        pattern=r"\[mpiexec@(?P<node>[^\]\s]{1,255})\] HYDT_bsci_launcher_(?P<launcher>\w{1,20})"
        r"_init \([^)\n]{1,120}\): (?P<why>[^\n]{1,120})",
        rule="JOIN001",
        says="mpiexec on {node} could not use the batch system {launcher} to start its processes ({why}); no "
        "rank was started",
        fix="env | grep -E 'PBS_|SLURM_|LSB_'   # in the shell that calls mpiexec: it must run inside the "
        "job, and in no ssh, screen or subprocess with another environment; else mpiexec -bootstrap ssh "
        "-f HOSTFILE",
        certainty=Certainty.CERTAIN,
        explains=("EXIT003", "LOG012"),
        sample="[mpiexec@node-a] HYDT_bsci_launcher_pbs_init (./tools/bootstrap/external/pbs_init.c:33): "
        "tm_init() failed with TM error 17002",
        source="its wording from the source of MPICH 1.4 to 4.3 (hydra)",
    ),
    KnownMessage(
        key="arguments alias each other",
        pattern=r"memcpy arguments alias each other.{0,700}?(?:(?<=\n)(?P<rank>\d{1,7}"
        r"): \S{1,255}: -?\d+: process (?P=rank) exited|\Z)",
        rule="LOG013",
        says="a program gave an MPI call the same buffer to send from and to receive into",
        fix="MPI_IN_PLACE as the send buffer (mpi4py: MPI.IN_PLACE) at the root, or a buffer of its own   "
        "# in the call that the first line of the error stack names; older MPICH let it pass",
        certainty=Certainty.CERTAIN,
        explains=("EXIT003", "LOG012", "LOG011"),
        sample="MPIR_Localcopy(349)...: memcpy arguments alias each other, dst=0x3C16C668 src=0x3C16C668 "
        "len=8",
        source="its wording from the source of MPICH 1.3 to 4.3",
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
        sample="[mpiexec@node-a] check_exit_codes (../hydra_demux_poll.c:117): unable to run bstrap_proxy on "
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
        sample="[mpiexec@node-a] check_exit_codes (../hydra_demux_poll.c:114): unable to run proxy on node-b "
        "(pid 39814)",
        source=_HYDRA,
    ),
    KnownMessage(
        key="unrecognized argument ",
        pattern=r"\[mpiexec@(?P<node>[^\]\s]{1,255})\] match_arg \([^\n]{1,80}\): unrecognized argument "
        r"(?P<what>[\w-]{1,80})",
        rule="LOG013",
        says="mpiexec does not know the option --{what}: this mpirun is MPICH's or Intel's, and such options "
        "are mostly Open MPI's",
        fix="mpirun --version   # leave --{what} out, or put the mpirun of Open MPI first in PATH: it must "
        "be of the MPI that mpi4py or Horovod was built with",
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
        pattern=r"\[proxy:[\d:]{1,12}@(?P<node>[^\]\s]{1,255})\][^\n]{0,200}?execvp error on file "
        r"(?P<what>\S{1,255}) \((?P<why>[^)\n]{1,80})\)",
        rule="JOIN001",
        says="mpiexec could not start {what} on {node}: {why}",
        fix="ssh {node} which {what}   # without a login shell: the same path on all hosts, or give "
        "mpiexec the full "
        "path; a name of a variable within it means that the variable was not set: source that library's "
        "vars.sh",
        certainty=Certainty.CERTAIN,
        explains=("EXIT001", "EXIT003", "LOG012"),
        sample="[proxy:0:1@node-b] HYDU_create_process (utils/launch/launch.c:75): execvp error on file "
        "python3 (No such file or directory)",
        source=_HYDRA,
    ),
    KnownMessage(
        key="execvp error on file ",
        pattern=r"(?m:^)(?![^\n]{0,40}\[proxy:)[^\n]{0,300}?execvp error on file (?P<what>\S{1,255}) "
        r"\((?P<why>[^)\n]{1,80})\)",
        rule="JOIN001",
        says="mpiexec could not start {what} on a host: {why}",
        fix="which {what}   # on every host, in a shell without a login: the same path on all, or give "
        "mpiexec the full path",
        certainty=Certainty.CERTAIN,
        sample="launch.c:75: execvp error on file python3 (No such file or directory)",
        source=_HYDRA,
    ),
    KnownMessage(
        key="gethostbyname failed, ",
        pattern=r"gethostbyname failed, (?P<name>[\w.-]{1,255}) \(errno \d+\)",
        rule="NET001",
        says="a process could not resolve {name}, the name of its own host, in MPI_Init",
        fix="getent hosts {name}   # on that host; without output: add its address and {name} to /etc/hosts, "
        "in a container: --hostname, --add-host",
        certainty=Certainty.CERTAIN,
        explains=("LOG011", "LOG012"),
        sample="MPID_nem_tcp_init(379).............: gethostbyname failed, node-a (errno 1)",
        source="its wording from the source of MPICH 3 (ch3/nemesis/tcp)",
    ),
)
