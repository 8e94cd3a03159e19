"""What Slurm's commands show of nodes and jobs, and what its daemons write; and listings in healthy logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosed_texts import diagnose

NODE = """\
NodeName=gn-07 Arch=x86_64 CoresPerSocket=32
   CPUAlloc={used} CPUTot=64 CPULoad=0.10
   RealMemory=500000 AllocMem=0 FreeMem=480000 Sockets=2 Boards=1
   State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A
   CfgTRES=cpu=64,mem=500000M,billing=64,gres/gpu=8
   Reason={reason} [root@2026-01-02T03:04:05]
"""
SINFO = "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
QUEUE = "  JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
JOB = """\
JobId=4711 JobName=lm
   UserId=u(1000) GroupId=u(1000) MCS_label=N/A
   JobState={state} Reason={reason} Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode={code}
   Partition=gpu AllocNode:Sid=login:1
   NodeList=gn-07
   BatchHost=gn-07
   StdErr=/home/u/lm.err
"""


@pytest.mark.parametrize(
    ("text", "says", "fix"),
    [
        (
            NODE.format(state="DOWN+NOT_RESPONDING", reason="Not responding", used=0),
            "gn-07",
            "systemctl status slurmd",
        ),
        (
            NODE.format(
                state="IDLE+DRAIN",
                reason="gres/gpu count reported lower than configured (7 < 8)",
                used=0,
            ),
            "gres/gpu count reported lower",
            "nvidia-smi -L",
        ),
        (
            NODE.format(state="IDLE+DRAIN", reason="Low RealMemory", used=0),
            "Low RealMemory",
            "slurmd -C",
        ),
        (
            NODE.format(state="DOWN", reason="Kill task failed", used=0),
            "Kill task failed",
            "NodeName=gn-07 State=RESUME",
        ),
        (
            NODE.format(state="IDLE+DRAIN", reason="maintenance of the rack", used=0),
            "maintenance",
            "--exclude=gn-07",
        ),
        (
            "$ sinfo -R\nREASON               USER      TIMESTAMP           NODELIST\n"
            "Prolog error         root      2026-01-02T03:04:05 gn-07\n",
            "gn-07: Prolog error",
            "prolog",
        ),
        (
            SINFO
            + "gpu*         up   infinite      1  down* gn-07\ngpu*         up   infinite      3   idle "
            "gn-[01-03]\n",
            "gn-07 (down*)",
            "ssh gn-07",
        ),
        (
            QUEUE + "   4711       gpu       lm        u PD       0:00      2 (AssocGrpGRES)\n",
            "job 4711",
            "sacctmgr",
        ),
        (
            QUEUE
            + "   4711       gpu       lm        u PD       0:00      2 (DependencyNeverSatisfied)\n",
            "has failed",
            "scancel 4711",
        ),
        (
            JOB.format(state="FAILED", reason="NonZeroExitCode", code="1:0"),
            "job 4711 failed",
            "tail -50 /home/u/lm.err",
        ),
        (
            JOB.format(state="NODE_FAIL", reason="None", code="0:0"),
            "a node failed",
            "sacct -j 4711",
        ),
        (
            "slurmstepd: error: *** STEP 4711.0 STEPD TERMINATED ON gn-07 AT 2026-01-02T03:04:05 DUE TO "
            "JOB NOT ENDING WITH SIGNALS ***\n",
            "on gn-07 did not end",
            "State=RESUME",
        ),
    ],
)
def test_what_slurm_says_of_a_node_or_a_job(tmp_path: Path, text: str, says: str, fix: str) -> None:
    (finding,) = diagnose(tmp_path, text)
    assert says in finding.summary
    assert fix in finding.fix


STEPS = "".join(f"step {n} loss {3 - n / 10}\n" for n in range(12))


@pytest.mark.parametrize(
    "text",
    [
        NODE.format(state="MIXED", reason="none", used=32),
        NODE.format(state="ALLOCATED+DRAIN", reason="reboot after the job", used=64) + STEPS,
        SINFO + "gpu*         up   infinite      3   idle gn-[01-03]\n",
        SINFO + "gpu*         up   infinite      1  down* gn-09\n" + STEPS,
        QUEUE + "   4711       gpu       lm        u PD       0:00      2 (Priority)\n",
        QUEUE + "   4711       gpu       lm        u PD       0:00      2 (AssocGrpGRES)\n" + STEPS,
        QUEUE + "   4711       gpu       lm        u  R       9:00      2 gn-[01-02]\n",
        JOB.format(state="RUNNING", reason="None", code="0:0") + STEPS,
        JOB.format(state="COMPLETED", reason="None", code="0:0"),
    ],
)
def test_a_listing_in_which_all_is_well(tmp_path: Path, text: str) -> None:
    assert diagnose(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (
            'srun: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such '
            "file or directory",
            "systemctl status munge",
        ),
        ("slurmctld: error: Munge decode failed: Invalid credential", "ssh HOST unmunge"),
        ("slurmctld: error: Munge decode failed: Expired credential", "timedatectl"),
        ("sinfo: error: slurm_receive_msg: Zero Bytes were transmitted or received", "unmunge"),
        (
            "slurmd: error: Unable to register: Unable to contact slurm controller (connect failure)",
            "scontrol ping",
        ),
        ("slurmd: fatal: Unable to determine this slurmd's NodeName", "hostname -s"),
        ("slurmd: error: Node configuration differs from hardware: CPUs=8:4(hw)", "slurmd -C"),
        ("slurmd: error: cannot create cgroup context for cgroup/v2", "cgroup.conf"),
        ("slurmd: error: Job 4711 prolog failed status=1:0", "grep -iE 'prolog|epilog'"),
        ("sbatch: fatal: Could not establish a configuration source", "--conf-server"),
        (
            "sbatch: error: Batch job submission failed: Invalid job array specification",
            "MaxArraySize",
        ),
        (
            "[mpiexec@gn-1] mpiexec_get_parameters (a/params.c:9): assert (my_argv[1] != NULL) failed",
            "mpiexec --help",
        ),
        (
            "[proxy:0:1@gn-2] HYDU_sock_connect (u/sock.c:14): unable to get host address for gn-1 (1)",
            "getent hosts gn-1",
        ),
        (
            "[gn-1:42] PMIX ERROR: OUT-OF-RESOURCE in file base/bfrop_base_unpack.c at line 7",
            "PMIX_MCA_gds=hash",
        ),
        (
            "2026-01-02 03:04:05,678 ERROR scripts.py:9 -- Ray processes died unexpectedly:",
            "raylet.{out,err}",
        ),
        ("acme: error: the ring is not supported by this card", "list of build options"),
    ],
)
def test_an_error_of_a_daemon_or_launcher_has_its_own_next_step(
    tmp_path: Path, text: str, fix: str
) -> None:
    findings = diagnose(tmp_path, f"starting\n{text}\n")
    assert findings and fix in findings[0].fix, findings and findings[0].fix


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd: error: Unable to create TMPDIR [/scratch/4711]: Permission denied",
        "srun: error: spank: x11.so: Plugin file not found",
        "slurmctld: debug2: Munge encode failed: Failed to connect (retrying ...)",
        "srun: Job 4711 step creation temporarily disabled, retrying (Requested nodes are busy)",
    ],
)
def test_words_of_daemons_in_a_job_that_goes_on_are_none(tmp_path: Path, line: str) -> None:
    assert diagnose(tmp_path, f"{line}\nsrun: Step created for job 4711\n{STEPS}") == []
