"""What to type about the errors of MPI's launchers, by their words: Hydra, ORTE, PRRTE and PMIx."""

from __future__ import annotations

_SSH = "for h in $(cut -d: -f1 HOSTFILE | cut -d' ' -f1); do ssh -o BatchMode=yes $h "

MPI_ADVICE: tuple[tuple[str, str], ...] = (
    # Cards that send without the processor: UCX, libfabric and verbs need memory that stays where it is.
    (
        r"\b(?:ibv_\w{2,40}|mlx\d_?\w{0,20}|UCX|libfabric|psm[23]|efa)\b[^\n]{0,240}?"
        r"(?:[Cc]annot allocate memory|max locked memory|memlock)",
        "ulimit -l   # on the host that wrote it, in the job itself: it must be unlimited. Docker: --ulimit "
        "memlock=-1; Slurm: PropagateResourceLimitsExcept=MEMLOCK; systemd: LimitMEMLOCK=infinity; else "
        "/etc/security/limits.conf; if it is, dmesg -T | grep -i mlx5: a limit of the card",
    ),
    # Hydra: MPICH, Intel MPI, MVAPICH.
    (
        r"error parsing parameters|my_argv\[1\]|parse (?:user arguments|argument list)"
        r"|missing command line argument|match handler returned|unrecognized argument|argument matching",
        "mpiexec --version; mpiexec --help   # its own options, then -n N PROGRAM: this one is MPICH's or "
        "Intel's, and takes none of Open MPI's (--bind-to, --mca, -x); which -a mpiexec mpirun",
    ),
    (
        r"execvp error|unable to create process|spawn process returned|launch_procs returned"
        r"|error (?:while )?searching for executable",
        f"{_SSH}'command -v PROGRAM hydra_pmi_proxy'; done   # the program, and MPI's own proxy, must be "
        "at the same path on every host, in a shell without a login: give the whole path",
    ),
    (
        r"unable to connect to server (?P<host>[\w.:-]{1,255}) at port (?P<port>\d{1,5})",
        "from the other host: nc -vz {host} {port}; getent hosts {host}   # a firewall, or a name that "
        "leads to another network: mpiexec -iface NAME, MPIR_CVAR_CH3_PORT_RANGE=LOW:HIGH (Intel: "
        "I_MPI_PORT_RANGE)",
    ),
    (
        r"unable to get (?:host|IP) address for (?P<host>[\w.-]{1,255})|unable to get local host ?name",
        "getent hosts {host}   # on every host; no output: name it in DNS or /etc/hosts, or correct the "
        "hostfile",
    ),
    (
        r"find interface (?P<name>[\w.-]{1,60})|network interface IP|interface selection",
        "ip -br address   # on every host: -iface takes one of these names, which must be up on all of "
        "them",
    ),
    (
        r"open host ?file:? (?P<path>[\w./-]{1,200})|hostfile[^\n]{0,40}(?:not|invalid|unable)"
        r"|query the RMK"
        r"|node list|node count|tasks per node",
        "cat HOSTFILE; env | grep -E 'PBS_NODEFILE|SLURM_(NODELIST|TASKS)|LSB_'   # one host a line "
        "(MPICH HOST:N, Open MPI HOST slots=N); inside a batch job mpiexec takes the job's own: give it -f "
        "only outside",
    ),
    (
        r"change wdir to (?P<path>[\w./-]{1,200})",
        "ls -ld {path}   # on every host: mpiexec -wdir FOLDER that all of them have",
    ),
    (
        r"get path to the (?P<name>\w{1,20}) executable",
        "command -v {name}   # install it, or start in another way: mpiexec -bootstrap ssh (or slurm, "
        "fork)",
    ),
    (
        r"\btm_\w+\(\) failed",
        "qstat -f $PBS_JOBID | grep exec_host; pbsnodes -l   # a node of the job whose daemon does not "
        "answer? Outside of PBS: mpiexec -bootstrap ssh -f $PBS_NODEFILE",
    ),
    (
        r"unable to listen on port|port range|PMI port|No port",
        "ss -ltn | wc -l; echo $MPIR_CVAR_CH3_PORT_RANGE $I_MPI_PORT_RANGE   # is a range set that is in "
        "use?",
    ),
    (
        r"topology library|hwloc_set_\w+|topolib|bind process failed|hardware object not found",
        "mpiexec -bind-to none -n N PROGRAM   # for one run; lscpu; cat /proc/self/status | grep "
        "Cpus_allowed",
    ),
    (
        r"PMI(?:2|x|X)?(?:_|-)?(?:Init|init|version|KVS|kvs|Get|server|wire)\w*|PMI (?:command|response"
        r"|request|line|message)"
        r"|PMI_RANK|wire protocol",
        "ldd $(command -v PROGRAM) | grep -iE 'mpi|pmi'; srun --mpi=list   # the launcher must be of the "
        "MPI that the program was built with: MPICH and Intel: srun --mpi=pmi2, Open MPI 4 and 5: "
        "--mpi=pmix, or each MPI's own mpiexec",
    ),
    (
        r"(?:hydra_\w*|bstrap_|pmi_)proxy[^\n]{0,40}(?:No such file|not found)",
        f"{_SSH}'command -v hydra_pmi_proxy hydra_bstrap_proxy'; done   # it must be found on every host "
        f"in a "
        "shell without a login: PATH, or mpiexec by its whole path; Intel MPI: source its vars.sh there",
    ),
    (
        r"bstrap_proxy|hydra_\w*proxy|setting up the (?:boo?tstrap|bstrap)|launcher cannot launch",
        f"{_SSH}hostname; done   # without a password on each; in a job: mpiexec -bootstrap slurm (or "
        "pbsdsh, lsf); Intel MPI: source its vars.sh on every host",
    ),
    (
        r"\[(?:mpiexec|proxy:)[^\]\n]{1,255}\]|control socket|HYD[TU]?_\w+|demux engine|assert \(!closed\)"
        r"|(?:from|to|of) (?:the )?(?:proxy|proxies|downstream|upstream)\b|launcher returned"
        r"|process manager (?:error|returned)",
        "read the first line above it that a rank or another host wrote: mpiexec only lost its proxy "
        "there; on each host: dmesg -T | grep -iE 'killed process|oom'; mpiexec -verbose -n 2 hostname "
        "tells whether starting works",
    ),
    # Open MPI, PRRTE, PMIx.
    (
        r"pmix_server_listener\S* bind|session dir\w*|PMIx? [^\n]{0,60}(?:bind|rendezvous file)"
        r"|NO-PERMISSIONS"
        r"|server rendezvous|rendezvous file|orte_tmpdir_base|prte_tmpdir",
        "df -h /tmp; ls -ld /tmp $TMPDIR /tmp/ompi.* /tmp/prte.*   # on every host: room, permission, "
        "folders left by an earlier run, a path shorter than 90 characters: export TMPDIR=/tmp",
    ),
    (
        r"PMIX ERROR: (?:OUT-OF-RESOURCE|UNPACK|BAD-PARAM|NOT-SUPPORTED|ERROR|PACK-MISMATCH|UNKNOWN-DATA"
        r"|INIT"
        r"|OPT-CHECK|INVALID)\S*|UNSUPPORTED TYPE|PMIX ERROR: \S+ in file \S*(?:bfrop|gds)",
        "ompi_info | grep -iE 'pmix|prrte'; srun --mpi=list   # on every host: one version of PMIx for the "
        "launcher and the program; for one run PMIX_MCA_gds=hash; df -h /dev/shm /tmp",
    ),
    (
        r"PMIX ERROR|PMIx_\w+ (?:failed|returned)|pmix\w* (?:init|server)\w* failed",
        "ompi_info | grep -iE 'pmix|prrte'; env | grep -E 'PMIX_|OMPI_MCA_|PRTE_'   # on every host: one "
        "version, and no variables of an outer job (unset them for an inner mpirun); df -h /tmp",
    ),
    (
        r"ORTE_ERROR_LOG: Data unpack|Data unpack (?:had|would)|daemon[^\n]{0,60}version",
        "mpirun --version; ssh HOST mpirun --version   # one Open MPI on every host, first in PATH and "
        "LD_LIBRARY_PATH of a shell without a login: mpirun --prefix FOLDER",
    ),
    (
        r"launching agents?|plm_(?:ssh|rsh)_agent",
        "command -v ssh rsh srun   # install openssh-client where mpirun runs, or --mca plm_rsh_agent "
        "PROGRAM (PRRTE: --prtemca plm_ssh_agent)",
    ),
    (
        r"\b(?:prted|orted)\b|(?:ORTE|PRTE|prterun|mpirun|prte) was unable to reliably start"
        r"|daemon has unexpectedly failed",
        f"{_SSH}'command -v prted orted; ldconfig -p | grep -c libmpi'; done   # without a password and "
        "without a login shell on each; then mpirun --prefix FOLDER; between them no firewall: --mca "
        "oob_tcp_if_include NETWORK/BITS",
    ),
    (
        r"[Cc]omponent[^\n]{0,60}(?:not found|could not be|unable)|unable to open mca_|MCA (?:parameter"
        r"|variable)"
        r"|framework[^\n]{0,60}not (?:be )?found",
        "ompi_info | grep MCA; env | grep -E 'OMPI_MCA|PRTE_MCA|PMIX_MCA'; cat "
        "~/.openmpi/mca-params.conf   # does this build have that component? Open MPI 5 took several "
        "away (btl vader is sm, oob and plm are PRRTE's)",
    ),
    (
        r"(?:mapping|map-by|rank-by|bind-to|binding|cpu[- ]list|processing elements|ppr\b"
        r"|overload)[^\n]{0,200}(?:not|invalid|fail|unable|conflict|unknown|more)",
        "lscpu | head; mpirun --display map,bind,allocation -n 2 hostname   # what the host has against "
        "what was asked for; for one run: --bind-to none --map-by slot",
    ),
)
"""Words of the launchers' errors, and what to type; more special rows come first."""
