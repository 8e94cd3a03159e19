"""The reasons that Slurm's commands give for what they could not do, and what to do about each.

Slurm words them in one place for all its commands (common/slurm_errno.c of Slurm 17.11 to 26.05).
"""

from __future__ import annotations

import re

_COMMAND = re.compile(r"^(?:\d{1,7}: )?(?:srun|sbatch|salloc|slurmstepd)(?:\[\d+\])?: ")
_REASONS = (
    (
        r"Memory required by task is not available",
        "srun --mem=0 PROGRAM   # all memory that the job has; or less in each step (--mem, --mem-per-cpu, "
        "--exact), since steps that run hold theirs: squeue -s -j $SLURM_JOB_ID; what the job has: scontrol "
        "show job $SLURM_JOB_ID | grep -i mem",
    ),
    (
        r"More processors requested than permitted|Requested node configuration is not available"
        r"|CPU count (?:per node can not be|specification)"
        r"|Requested nodes are busy|Invalid (?:generic resource|Trackable RESource)"
        r"|(?:Node|Task) count specification invalid|Requested nodes not in this partition",
        "compare what srun asks for (-n, -N, -w, -c, --mem, --gres) with what the job has: scontrol show "
        "job $SLURM_JOB_ID; then #SBATCH --ntasks, --cpus-per-task, --mem of as much, or ask srun for "
        "less; for a new job, with what the nodes have: sinfo -N -o '%N %c %m %G %P'",
    ),
    (
        r"Socket timed out on send/recv|Unable to contact slurm controller|Zero Bytes were transmitted"
        r"|Rate limit exceeded|Communication connection failure",
        "scontrol ping; sdiag | head -20   # does Slurm's controller answer? It is down or too busy: try "
        "again later, with one job array in place of many calls; then tell who runs the cluster",
    ),
    (
        r"Invalid (?:account|partition|qos|wckey|feature)|User's group not permitted|violates accounting/QOS"
        r"|No partition specified|Requested time limit is invalid|breached requested QOS"
        r"|Access/permission denied|MaxJobCount limit",
        "sacctmgr show assoc user=$USER format=account,partition,qos%40,maxsubmit,grptres; scontrol show "
        "partition   # then --account, --partition, --qos and --time that one line of them allows",
    ),
    (
        r"[Jj]ob credential|User not found on host|Invalid (?:user|group) id|Protocol authentication error"
        r"|Incompatible versions of client and server",
        "on the node that it names: id $USER; timedatectl; systemctl status munge slurmd   # user, clock, "
        "munge's key and Slurm's version must be those of the controller; without it: --exclude=NODE",
    ),
    (
        r"Job/step already completing|Invalid job id|Job has already finished|Job is not running",
        "sacct -j JOB -o JobID,State,ExitCode,End   # the job in which it was to start had ended; echo "
        "$SLURM_JOB_ID: is it that of an older session?",
    ),
    (
        r"[Nn]ode not available|Required partition not available|Partition in DOWN state"
        r"|Nodes required for job are|partition configuration not available now",
        "sinfo -R; sinfo -s   # which nodes are down or drained, and why? Take others (-w, --exclude, "
        "-p), or wait",
    ),
    (
        r"MPI (?:plugin|type)|mpi/\w+|couldn't find[^\n]{0,20} plugin",
        "srun --mpi=list; scontrol show config | grep -i MpiDefault   # one of them with which the MPI was "
        "built: srun --mpi=pmix PROGRAM",
    ),
)
_COMPILED = tuple((re.compile(pattern), advice) for pattern, advice in _REASONS)


def slurm_advice(line: str) -> str:
    """Return what to do about the reason that a command of Slurm writes in this line; "" if none is known."""
    if not _COMMAND.match(line):
        return ""
    return next((advice for pattern, advice in _COMPILED if pattern.search(line)), "")
