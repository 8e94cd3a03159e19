"""What to type about the errors of Slurm's daemons and commands, by their words (Slurm 17.11 to 26.05)."""

from __future__ import annotations

_NODE = r"(?P<node>[A-Za-z][\w.-]*\w)"
_RESUME = "then scontrol update NodeName={node} State=RESUME"

SLURM_ADVICE: tuple[tuple[str, str], ...] = (
    # Authentication.
    (
        r"[Mm]unge (?:encode|decode) failed: (?:Failed to (?:access|connect)|Socket|Munged? communication)"
        r"|munge\.socket|If munged is up",
        "on the host that wrote it: systemctl status munge; ls -l /run/munge; munge -n | unmunge   # "
        "start it there: systemctl restart munge; in a container: mount /run/munge of its host",
    ),
    (
        r"(?:Expired|Rewound|Replayed) credential|credential (?:has )?expired|cred_expire",
        "timedatectl; chronyc tracking   # on both hosts: their clocks must agree within five minutes; a "
        "prolog or a shared disk that takes minutes has the same effect: cred_expire=600 in AuthInfo",
    ),
    (
        r"[Mm]unge (?:encode|decode) failed|unmunge: Error|[Ii]nvalid (?:job )?[Cc]redential"
        r"|Protocol authentication error|authentication error|auth_g_(?:create|verify)|auth_munge"
        r"|MUNGE (?:ttl|Credential)|munge_ctx_\w+",
        "munge -n | ssh HOST unmunge   # from the controller to each node, and back: one "
        "/etc/munge/munge.key on all (sha256sum as root), clocks that agree (timedatectl); then systemctl "
        "restart munge slurmd",
    ),
    (
        r"\bsack_(?:verify|create)|\bsack\.socket|auth/slurm|slurm\.key|\bjwks\b|jwt_decode"
        r"|key file loaded",
        "ls -l /etc/slurm/slurm.key /etc/slurm/slurm.jwks /run/slurm*/sack.socket   # the same key on all "
        "hosts, of SlurmUser, mode 0600; systemctl status sackd slurmd",
    ),
    (
        r"Zero Bytes were transmitted or received",
        "munge -n | ssh CONTROLLER unmunge; sinfo -V; ssh CONTROLLER tail -20 "
        "/var/log/slurm/slurmctld.log   # it closed the connection: munge's key or clock differs, or the "
        "versions do; its log says which",
    ),
    (
        r"[Ii]ncompatible versions? of client|protocol[_ ]version \d+ not supported"
        r"|Incompatible versions of client and server",
        "sinfo -V; ssh NODE slurmd -V; ssh CONTROLLER slurmctld -V   # daemons may be at most three "
        "releases older than slurmctld, and never newer: upgrade slurmdbd, then slurmctld, then slurmd",
    ),
    # The controller.
    (
        r"Unable to (?:register|contact slurm controller|establish controller)|Unable to contact slurm"
        r"|slurm_\w+: Unable to contact|[Cc]an't contact (?:the )?slurmctld|Error talking to slurmctld",
        "scontrol ping; nc -vz CONTROLLER 6817; ssh CONTROLLER systemctl status slurmctld   # CONTROLLER "
        "is SlurmctldHost in slurm.conf; then a firewall, or a name that this host resolves otherwise: "
        "getent hosts CONTROLLER",
    ),
    (
        r"establish a configuration source|fetch_config|resolve_ctls|failed to load configs?\b",
        "ls -l /etc/slurm/slurm.conf; slurmd --conf-server CONTROLLER:6817 -D -vv   # neither a file nor "
        "the controller gave the configuration: getent hosts CONTROLLER, dig +short -t srv "
        "_slurmctld._tcp",
    ),
    (
        r"(?:StateSaveLocation|CLUSTER (?:NAME|ID) MISMATCH|Can ?not recover \w+ state"
        r"|Incomplete [\w ]{1,30} (?:save|checkpoint|state) file|state save loc)",
        "ls -ld $(scontrol show config | awk '/StateSaveLocation/ {{print $3}}'); df -h   # SlurmUser "
        "must be able to write there; after a change of ClusterName remove only its file clustername",
    ),
    (
        r"registered cluster|update cluster|persist_init",
        "sacctmgr show cluster format=cluster,controlhost,controlport; nc -vz HOST PORT   # that it lists: "
        "slurmctld of that cluster must run there (systemctl status slurmctld), and be reached from "
        "slurmdbd",
    ),
    (
        r"SLURM_MEM_PER_\w+[^\n]{0,80}mutually exclusive",
        "env | grep SLURM_MEM   # left by the job in which it was called: unset SLURM_MEM_PER_CPU "
        "SLURM_MEM_PER_GPU SLURM_MEM_PER_NODE, then ask with one of --mem, --mem-per-cpu, --mem-per-gpu",
    ),
    (
        r"[Jj]ob array specification",
        "scontrol show config | grep MaxArraySize   # --array may hold no larger number than that less "
        "one: several smaller arrays, with % for how many run at a time",
    ),
    (
        r"slurmdbd|accounting_storage|DBD_\w+|slurm_persist_conn|assoc_mgr",
        "sacctmgr ping; systemctl status slurmdbd mariadb; nc -vz DBD_HOST 6819   # "
        "AccountingStorageHost in slurm.conf; does the cluster stand in: sacctmgr show cluster",
    ),
    (
        r"[Uu]nable to (?:bind|open) listen(?:ing)? (?:port|socket)|slurm_init_msg_engine\w*|SrunPortRange",
        "ss -ltnp | grep -E ':68(17|18|19)'   # does another slurmd or slurmctld hold the port? End it "
        "(systemctl stop slurmd); srun: SrunPortRange in slurm.conf must be free and open between the "
        "nodes",
    ),
    (
        r"pyxis[^\n]{0,40}: mkdir: [^\n]{0,40}[`'\"](?P<path>/[\w./@%+=-]*)",
        "ls -ld {path} $(dirname {path}); df -h {path}   # on that node, as the user: ENROOT_CACHE_PATH, "
        "ENROOT_DATA_PATH and ENROOT_RUNTIME_PATH (/etc/enroot/enroot.conf) must be folders that each "
        "user may write to",
    ),
    # A node.
    (
        r"Unable to determine this slurmd's NodeName|Unable to find node record for "
        + _NODE
        + r"|slurmd registered on unknown node|[Ii]nvalid node name",
        "hostname -s; grep -E '^NodeName' /etc/slurm/slurm.conf   # this name must be among them "
        "(NodeName, or NodeHostname=), in the same file on all hosts: scontrol reconfigure; for a test "
        "slurmd -D -N NAME",
    ),
    (
        r"(?:configuration|Config) differs from hardware|[Ll]ow (?:RealMemory|socket|TmpDisk|CPUs"
        r"|\w+_memory)"
        r"|different slurm\.conf|Setting node \S+ state to INVAL|has low \w+",
        "slurmd -C   # on that node: copy its line to NodeName= in slurm.conf (a RealMemory somewhat "
        "below it), the same file on all hosts; then scontrol reconfigure; scontrol update NodeName=NODE "
        "State=RESUME",
    ),
    (
        r"gres/gpu\b[^\n]{0,40}(?:count|type|found|mismatch|lower|changed)|gres\.conf|AutoDetect"
        r"|Invalid GRES"
        r"|GRES[^\n]{0,40}(?:invalid|count)|NVML|Waiting for gres",
        "nvidia-smi -L; ls /dev/nvidia*; slurmd -G   # on that node: a GPU or the driver is missing, or "
        "gres.conf names others; then systemctl restart slurmd; scontrol update NodeName=NODE State=RESUME",
    ),
    (
        r"[Nn]odes? " + _NODE + r"[\w,\[\]-]* not responding(?:, setting DOWN)?",
        "scontrol show node {node}; ssh {node} systemctl status slurmd; nc -vz {node} 6818   # "
        f"start slurmd there, open its port; {_RESUME}",
    ),
    (
        r"not responding|waited too long for nodes|did not respond|node_did_resp|NOT_RESPONDING"
        r"|ping cycle took more",
        "sinfo -R; scontrol show node NODE; ssh NODE systemctl status slurmd; nc -vz NODE 6818   # start "
        "slurmd there, open its port; then scontrol update NodeName=NODE State=RESUME",
    ),
    (
        r"Kill task failed|NOT ENDING WITH SIGNALS|[Uu]nkillable|timed out waiting for \S+ to complete",
        "ps -eo pid,stat,wchan:32,cmd | awk '$2 ~ /D/'; dmesg -T | tail -40   # on that node: what is in "
        "state D waits for a disk, a shared file system or the GPU's driver; mend that or reboot it; "
        "then scontrol update NodeName=NODE State=RESUME",
    ),
    (
        r"[Pp]rolog\w*[^\n]{0,60}(?:fail|error|timed|exit|status|killed)|[Ee]pilog\w*[^\n]{0,60}(?:fail"
        r"|error|timed|exit"
        r"|status|killed)|launch failure, JobId|job env setup",
        "scontrol show config | grep -iE 'prolog|epilog'; ssh NODE journalctl -u slurmd -n 50   # run that "
        "script by hand there, as root; then scontrol update NodeName=NODE State=RESUME",
    ),
    (
        r"[Hh]ealth_?[Cc]heck|HealthCheckProgram",
        "scontrol show config | grep HealthCheckProgram   # run it by hand on that node: its output says "
        "what it found; then scontrol update NodeName=NODE State=RESUME",
    ),
    (
        r"power_save|ResumeProgram|ResumeTimeout|power(?:ing)? up|PowerAction|resume_timeout",
        "sinfo -R; scontrol show node NODE; scontrol show config | grep -iE 'resume|suspend'   # the "
        "cloud did not bring the node up in time: the log of ResumeProgram says why (capacity, quota); "
        "raise ResumeTimeout",
    ),
    # What starts and confines a step.
    (
        r"exceeded (?:job |step |virtual )*memory limit|Exceeded job memory limit",
        "sacct -j JOB -o JobID,MaxRSS,ReqMem,State   # ask for more (--mem, --mem-per-cpu), or need "
        "less: fewer DataLoader workers, smaller batches",
    ),
    (
        r"\bcgroup\b[^\n]{0,160}(?:[Uu]nable|cannot|[Cc]an't|[Ff]ail|not |No such|[Uu]nknown|error)"
        r"|(?:[Uu]nable|cannot|[Cc]ouldn't|[Ff]ail\w*|[Uu]nknown|error)[^\n]{0,100}\bcgroups?\b|xcgroup\w*"
        r"|cpuset[^\n]{0,60}(?:fail|unable|cannot)",
        "stat -fc %T /sys/fs/cgroup; cat /sys/fs/cgroup/cgroup.controllers; systemctl status slurmd   # on "
        "that node: cgroup2fs wants CgroupPlugin=autodetect (or cgroup/v2) in cgroup.conf, Delegate=yes in "
        "slurmd's unit; in a container: --privileged, --cgroupns=host",
    ),
    (
        r"look up username for uid|[Uu]ser not found on host|uid \d+ (?:is )?not found|passwd entry for uid"
        r"|invalid (?:user|group) nobody|(?:failed|unable) to (?:find|resolve) (?:user|uid|group)",
        "id $USER; getent passwd UID   # on that node: the user must be known there with the same number "
        "(systemctl status sssd; LDAP); else LaunchParameters=send_gids, nss_slurm",
    ),
    (
        r"[Cc]ould(?:n't| not) chdir to [`'\"]?(?P<path>/[\w./@%+=-]*)",
        "ls -ld {path}; findmnt -T {path}   # on that node, as the user: mounted there too? Else the step "
        "begins in /tmp: --chdir=FOLDER",
    ),
    (
        r"[Cc]ould not open (?:std(?:in|out|err)|output|error) file [`'\"]?(?P<path>/[\w./@%+=-]*)",
        "mkdir -p $(dirname {path}); ls -ld $(dirname {path}); findmnt -T {path}   # on the first node, "
        "as the user: Slurm makes no folder for --output and --error, and the job ends without a log",
    ),
    (
        r"slurmstepd(?: failed| file|:? .{0,20}No such)|_forkexec_slurmstepd|exec of slurmstepd"
        r"|init slurmstepd"
        r"|send_slurmd_conf|Failed to (?:read|invoke) [\w. ]{1,40} (?:from slurmd|plugin)",
        "journalctl -u slurmd -n 80; ls -l $(dirname $(command -v slurmd))/slurmstepd; ldd $(command -v "
        "slurmd)   # on that node: its own log says why slurmstepd did not start: a plugin, cgroups, no "
        "room in SlurmdSpoolDir",
    ),
    (
        r"mpi/pmix|pmixp_\w+|mpi_pmix|PMIx[^\n]{0,40}plugin|MPI plugin|mpi/pmi2|MPI: \w",
        "srun --mpi=list; ldd $(command -v PROGRAM) | grep -i pmi; ls $(scontrol show config | awk "
        "'/PluginDir/ {{print $3}}') | grep mpi_   # take the one that the program's MPI was built with: "
        "srun --mpi=pmix; it must be there on every node",
    ),
    (
        r"(?:cannot|can't|[Cc]ouldn't|[Uu]nable to|[Ff]ailed to|incompatible)[^\n]{0,60}\bplugins?\b"
        r"|plugin_load\w*"
        r"|plugstack|\bspank\b|cannot create \S+ context for",
        "ls $(scontrol show config | awk '/PluginDir/ {{print $3}}'); sinfo -V; slurmd -V   # plugins, "
        "daemons and commands must be of one build; an optional one: out of plugstack.conf or "
        "slurm.conf, then scontrol reconfigure",
    ),
    (
        r"Failed to (?:validate job spec|ensure --)|Not enough gres to bind"
        r"|gpus[-_]per[-_]\w+[^\n]{0,60}(?:must|multiple)",
        "compare --gpus, --gpus-per-node, --gpus-per-task, --ntasks and --ntasks-per-node: each must "
        "follow from the others; simplest are --nodes, --gpus-per-node and --ntasks-per-node; scontrol "
        "show node NODE | grep -i gres",
    ),
    (
        r"Timed out waiting for job step to complete|Error waiting on condition in \w*step",
        "squeue -s -j JOB; scontrol show step JOB.STEP   # a process of the step does not end: ssh to "
        "its node, ps -eo pid,stat,cmd | awk '$2 ~ /D/'; what ended the step stands above in this log",
    ),
    (
        r"SlurmdSpoolDir|slurmd spool|SLURMD_SPOOL",
        "df -h $(scontrol show config | awk '/SlurmdSpoolDir/ {{print $3}}'); ls -ld /var/spool/slurm*   "
        "# on that node: it must exist, have room, and be root's",
    ),
    (
        r"slurm_(?:receive|send|open|msg)\w*|\bslurmctld\b[^\n]{0,80}(?:refused|timed out)|conmgr_\w+"
        r"|slurm_\w+_msgs?\b",
        "scontrol ping; sdiag | head -20; nc -vz HOST PORT   # HOST and PORT that it names: slurmctld "
        "6817, slurmd 6818, srun any: is the daemon there up, is its port open between the nodes?",
    ),
)
"""Words of Slurm's own errors, and what an administrator or a user types; more special rows come first."""
