"""Messages of batch systems: how srun's tasks ended, and why Slurm, PBS, LSF or Kubernetes ended a job."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Exit, Glimpse, Severity, Testimony

_SOURCE = "its wording from Slurm's source (slurmstepd, srun), not recorded"
_PYXIS = "its wording from the source of pyxis 0.8 to 0.20 (pyxis_slurmstepd.c)"
_NO_CONTAINER = "pyxis could not start the container of the step"
_CONTAINER_FIX = (
    "srun -w NODE --container-image=IMAGE hostname   # 401, 403: ~/.config/enroot/.credentials, and '#' "
    "after the registry; nvidia-container-cli: nvidia-smi on that node, else --exclude=NODE; failed to "
    "execute: --no-container-entrypoint; no space: ENROOT_CACHE_PATH, ENROOT_DATA_PATH; Slurm's reasons: "
    "slurmd's log"
)
_TASK_END = re.compile(
    r"^[ \t]*srun: error: (?P<host>[\w.-]+): tasks? (?P<tasks>[\d,-]+): (?P<how>[A-Z][^\n(]{1,80}?)"
    r"(?: \(core dumped\))?$",
    re.MULTILINE,
)
_EXIT_CODE = re.compile(r"Exited with exit code (\d{1,3})$")
_TEARDOWN = re.compile(
    r"Terminating (?:StepId|job step)|Job step aborted|Node failure on |\*\*\* (?:STEP|JOB) "
)
"""From this message on, srun and slurmstepd end the tasks that are left."""
_SIGNALS = {signal.strsignal(s): int(s) for s in signal.Signals}
_NESTED_LAUNCHER = re.compile(r"torch[./]distributed[./](?:elastic|run)|torchrun|accelerate launch")
"""Shows that each task is a launcher, so that its number is no rank."""
MAX_TASKS = 10_000
"""Tasks that are read of one list."""


def _cancellation(reason: str, says: str, fix: str, *, ended_wait: bool = False) -> KnownMessage:
    return KnownMessage(
        key=f"DUE TO {reason}",
        pattern=r"\*\*\* (?:JOB|STEP) (?P<step>[\d.]+)[^\n]{0,20} ON (?P<host>\S+) CANCELLED AT \S+ DUE TO "
        + reason,
        rule="EXIT001",
        says=says,
        fix=fix,
        certainty=Certainty.CERTAIN,
        ended_wait=ended_wait,
        sample="slurmstepd: error: *** JOB 123 ON node1 CANCELLED AT 2026-01-02T03:04:05 DUE TO "
        f"{reason} ***",
        source=_SOURCE,
    )


def _time_limit(
    key: str, pattern: str, system: str, fix: str, sample: str, source: str
) -> KnownMessage:
    """Return the message of one batch system."""
    return KnownMessage(
        key=key,
        pattern=pattern,
        rule="EXIT001",
        says=f"{system} ended the job at its time limit",
        fix=fix,
        certainty=Certainty.CERTAIN,
        ended_wait=True,
        sample=sample,
        source=source,
    )


MESSAGES = (
    _cancellation(
        "TIME LIMIT",
        "Slurm ended the job at its time limit",
        "ask for more time (--time), or save checkpoints and go on from them in the next job "
        "(#SBATCH --signal=USR1@120)",
        ended_wait=True,
    ),
    _cancellation(
        "PREEMPTION",
        "Slurm ended the job for one of a higher priority",
        "save checkpoints; --requeue starts it again, another partition or QOS may not be preempted",
    ),
    _cancellation(
        "NODE FAILURE",
        "Slurm ended the job because a node failed",
        "sacct -j {step} -o NodeList,State; ask the administrators for the node's state: scontrol show "
        "node",
    ),
    KnownMessage(
        key=" disabled, retrying (",
        pattern=r"srun: Job (?P<step>\d+) step creation (?:still|temporarily)"
        r" disabled, retrying \((?P<why>[^)\n]{1,80})\)(?!.{0,900}srun: (?:Step created|error: Unable to "
        r"create step))",
        rule="JOIN001",
        says="srun waits to start a step in job {step} ({why}): the job's other steps hold the nodes, "
        "CPUs or memory",
        fix="srun --overlap PROGRAM   # or export SLURM_OVERLAP=1, if the steps may share; else ask for "
        "less in each (-n, -c, --mem, --exact), or end the step that holds them: squeue -s -j {step}",
        proves_not="that it waits for ever: it starts once a step ends",
        awaits=True,
        explains=("LOG012",),
        sample="srun: Job 9479148 step creation still disabled, retrying (Requested nodes are busy)",
        source="its wording from the source of Slurm 19.05 to 25.05 (srun/launch.c)",
    ),
    KnownMessage(
        key="srun: error: ",
        pattern=r"srun: error: (?P<what>Cannot communicate with node"
        r"|Aborting, can not test connection to node"
        r"|Aborting, (?:step missing and io error|io error and missing step) on node"
        r"|[^\n]{0,40}?aborting, io error with slurmstepd on node) (?P<host>[\w-]+(?:\.[\w-]+)*)",
        rule="EXIT010",
        says="srun lost node {host} while the step ran: {what} {host}",
        fix="scontrol show node NAME; sacct -j JOB -o JobID,State,NodeList   # a mere number counts the "
        "job's nodes from 0: scontrol show hostnames NODELIST; start anew without it: --exclude=NAME",
        proves_not="that the node is down: its slurmstepd may have been killed, or the network between them",
        sample="srun: error: Aborting, io error and missing step on node 3",
        source="its wording from the source of Slurm 17.11 to 26.05 (api/step_launch.c)",
    ),
    KnownMessage(
        key="error: pyxis: printing",
        pattern=r"slurmstepd\S{0,80}: error: pyxis: printing [^\n]{0,40}\n"
        r"(?:[^\n]{0,80}pyxis: +(?:\[(?:INFO|WARN)\][^\n]*)?\n){0,20}"
        r"[^\n]{0,80}pyxis: +(?:\[ERROR\] )?(?P<why>[^\n]{3,200})",
        rule="JOIN001",
        says=f"{_NO_CONTAINER}: {{why}}",
        fix=_CONTAINER_FIX,
        explains=("EXIT003", "LOG012"),
        sample="slurmstepd: error: pyxis: printing enroot log file:\nslurmstepd: error: pyxis:     "
        "\nslurmstepd: error: pyxis:     enroot-switchroot: failed to execute: /bin/bash: No such file",
        source=_PYXIS,
    ),
    KnownMessage(
        key="error: pyxis: couldn't start container",
        pattern=r"slurmstepd\S{0,80}: error: pyxis: couldn't start container",
        rule="JOIN001",
        says=_NO_CONTAINER,
        fix=_CONTAINER_FIX,
        explains=("EXIT003", "LOG012"),
        sample="slurmstepd-sp-16: error: pyxis: couldn't start container",
        source=_PYXIS,
    ),
    KnownMessage(
        key="timeout waiting for task launch",
        pattern=r"timeout waiting for task launch, started (?P<count>\d+) of (?P<many>\d+) tasks",
        rule="JOIN001",
        says="Slurm started only {count} of the {many} tasks before its time was over",
        fix="srun -N NODES -n NODES --ntasks-per-node=1 hostname   # which node does not answer? Its slurmd, "
        "prolog or shared file system is slow or down: scontrol show node NAME; without it: --exclude=NAME",
        explains=("LOG012",),
        sample="srun: error: timeout waiting for task launch, started 6 of 8 tasks",
        source="its wording from the source of Slurm 2.3 to 26.05 (api/step_launch.c)",
    ),
    KnownMessage(
        key="Node failure on",
        pattern=r"srun: error: Node failure on (?P<host>[\w.,\[\]-]+)",
        rule="EXIT010",
        says="Slurm lost {host}: the node failed",
        fix="scontrol show node {host}; start the job anew without it: --exclude={host}",
        certainty=Certainty.CERTAIN,
        sample="srun: error: Node failure on node3",
        source=_SOURCE,
    ),
    KnownMessage(
        key="CANCELLED AT",
        pattern=r"\*\*\* JOB (?P<step>\d+) ON \S+ CANCELLED AT (?P<at>\S+) \*\*\*",
        rule="EXIT008",
        says="job {step} was cancelled at {at}, as scancel does it",
        fix="nothing is wrong in your code; sacct -j {step} -o JobID,State%30 tells who did it",
        severity=Severity.INFO,
        certainty=Certainty.CERTAIN,
        sample="slurmstepd: error: *** JOB 123 ON node1 CANCELLED AT 2026-01-02T03:04:05 ***",
        source=_SOURCE,
    ),
    KnownMessage(
        key="Task launch for",
        pattern=r"Task launch for (?:StepId=)?[\d.+]+ failed on node (?P<host>\[?[\w.-]+\]?): "
        r"(?P<why>Unable to layout tasks[^\n]{0,80}|Plugin initialization failed)",
        rule="JOIN001",
        says="Slurm could not start the tasks on {host}: {why}",
        fix="srun --cpu-bind=none -c CPUS PROGRAM   # the job's CPUs there do not fit the tasks and "
        "their binding: scontrol show job -d JOB | grep CPU_IDs; --cpus-per-task on srun, too; env | grep -E "
        "'SLURM_(CPUS|CPU_BIND|TRES)'",
        certainty=Certainty.CERTAIN,
        sample="srun: error: Task launch for StepId=123.0 failed on node node3: Unable to "
        "layout tasks on given cpus",
        source=_SOURCE,
    ),
    KnownMessage(
        key="Task launch for",
        pattern=r"Task launch for (?:StepId=)?[\d.+]+ failed on node (?P<host>\[?[\w.-]+\]?): "
        r"(?P<why>(?!Unable to layout|Plugin init)[^\n]{1,120})",
        rule="JOIN001",
        says="Slurm could not start the tasks on {host}: {why}",
        fix="munge -n | ssh {host} unmunge; ssh {host} 'timedatectl; systemctl status slurmd'   # one munge "
        "key, clocks that agree (credentials expire), one slurm.conf; then without it: --exclude={host}",
        certainty=Certainty.CERTAIN,
        sample="srun: error: Task launch for StepId=123.0 failed on node node3: Job credential expired",
        source=_SOURCE,
    ),
    KnownMessage(
        key="NOT ENDING WITH SIGNALS",
        pattern=r"\*\*\* (?:STEP|JOB) (?P<step>[\w.+-]{1,40}) (?:STEPD TERMINATED )?ON "
        r"(?P<host>[\w.-]{1,255}) [^\n]{0,60}DUE TO JOB NOT ENDING WITH SIGNALS",
        rule="HANG007",
        says="processes of step {step} on {host} did not end by SIGKILL: Slurm gave them up, and drains the "
        "node ('Kill task failed')",
        fix="ssh {host} \"ps -eo pid,stat,wchan:32,cmd | awk '\\$2 ~ /D/'; dmesg -T | tail -40\"   # what "
        "is in state D waits for a disk, a shared file system or the GPU's driver: mend that or reboot "
        "it; then scontrol update NodeName={host} State=RESUME; UnkillableStepTimeout may be longer",
        certainty=Certainty.CERTAIN,
        sample="slurmstepd: error: *** STEP 123.0 STEPD TERMINATED ON node1 AT 2026-01-02T03:04:05 DUE TO "
        "JOB NOT ENDING WITH SIGNALS ***",
        source=_SOURCE,
    ),
    KnownMessage(
        key="execve():",
        pattern=r"error: execve\(\): (?P<what>[^\n:]{1,400}): (?P<why>[A-Z][^\n]{1,80})",
        rule="JOIN001",
        says="Slurm could not start {what}: {why}",
        fix="ls -l {what}   # on every node: it must be there, and executable",
        certainty=Certainty.CERTAIN,
        sample="slurmstepd: error: execve(): /home/u/run.sh: Permission denied",
        source=_SOURCE,
    ),
    KnownMessage(
        key="oom",
        pattern=r"[Dd]etected (?P<count>\d+) oom[-_ ]kill event(?:\(?s\)?)? in "
        r"(?:StepId=|step )(?P<step>[\w.]*\w)",
        rule="RES001",
        says="the kernel killed processes of step {step} for lack of memory ({count} events)",
        fix="give the job more memory (--mem), or smaller batches and fewer DataLoader workers",
        proves_not="that a rank was killed: it may have been a process that a rank started",
        sample="slurmstepd: error: Detected 1 oom_kill event in StepId=123.0. Some of the step tasks have "
        "been OOM Killed.",
        source=_SOURCE,
    ),
    _time_limit(
        "job killed: walltime",
        r"PBS: job killed: walltime \d+ exceeded limit \d+",
        "PBS",
        "ask for more time (-l walltime=), or save checkpoints and go on from them in the next job",
        "=>> PBS: job killed: walltime 3611 exceeded limit 3600",
        "its wording from the sources of OpenPBS and Torque (resmom)",
    ),
    _time_limit(
        "TERM_RUNLIMIT",
        r"TERM_RUNLIMIT: job killed after reaching LSF run time limit",
        "LSF",
        "ask for more time (bsub -W), or save checkpoints and go on from them in the next job",
        "TERM_RUNLIMIT: job killed after reaching LSF run time limit.",
        "its wording from LSF's documents (bhist, termination reasons)",
    ),
    _time_limit(
        "DeadlineExceeded",
        r"\bDeadlineExceeded\b[^\n]{0,60}(?:Job|Pod) was active (?:on the node )?longer than "
        r"(?:the )?specified deadline",
        "Kubernetes",
        "raise activeDeadlineSeconds of the job, or save checkpoints and go on from them in the next job",
        "Warning  DeadlineExceeded  1m  job-controller  Job was active longer than specified deadline",
        "its wording from the source of Kubernetes (job controller, kubelet's active_deadline)",
    ),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    glimpses = tuple(_task_ends(exhibit))
    heard = find_known_messages(exhibit, MESSAGES)
    if any(h.says.startswith(f"{_NO_CONTAINER}: ") for h in heard):
        heard = tuple(h for h in heard if h.says != _NO_CONTAINER)  # the reason says more
    return Testimony(heard=heard, glimpses=glimpses) if heard or glimpses else None


def _task_ends(exhibit: Exhibit) -> Iterator[Glimpse]:
    text = exhibit.text
    if "srun: error: " not in text:
        return
    is_nested = _NESTED_LAUNCHER.search(text) is not None
    teardown = _TEARDOWN.search(text)
    failed = False
    # A traceback that names no rank is of one of these tasks: its exit code tells nothing more.
    has_traceback = "Traceback (most recent call last)" in text
    line_number, counted_up_to = 0, 0
    hosts_of_task: dict[int, set[str]] = {}
    for match in _TASK_END.finditer(text):
        for task in _task_numbers(match["tasks"]):
            hosts_of_task.setdefault(task, set()).add(match["host"])
    for match in _TASK_END.finditer(text):
        line_number, counted_up_to = (
            line_number + text.count("\n", counted_up_to, match.start()),
            match.start(),
        )
        after_failure = failed or (teardown is not None and teardown.start() < match.start())
        end = _task_end(match, after_failure)
        if end is None:
            continue
        failed = True
        if end.code is not None and (has_traceback or is_nested):
            continue
        for task in _task_numbers(match["tasks"]):
            yield Glimpse(
                origin=exhibit.place_of_line(line_number),
                # The components of a heterogeneous job each count their own tasks.
                rank=-1 if is_nested or len(hosts_of_task[task]) > 1 else task,
                host=match["host"],
                exit=end,
            )


def _task_end(match: re.Match[str], after_failure: bool) -> Exit | None:
    """Return how the task ended, or None if the text is not known.

    ``after_failure``: another task ended before, so SIGTERM and SIGKILL come from srun itself.
    """
    line = match[0]
    if match["how"] == "Out Of Memory":
        return Exit(ended_at=0.0, signal=int(signal.SIGKILL), oom=True, last_line=line)
    code = _EXIT_CODE.match(match["how"])
    if code is not None:
        return Exit(ended_at=0.0, code=int(code[1]), last_line=line)
    number = _SIGNALS.get(match["how"])
    if number is None:
        return None
    ours = after_failure and number in (signal.SIGKILL, signal.SIGTERM)
    return Exit(ended_at=0.0, signal=number, ours=ours, last_line=line)


def _task_numbers(text: str) -> list[int]:
    """Return ``0-2,5`` as numbers, at most `MAX_TASKS`."""
    numbers: list[int] = []
    for part in text.split(","):
        begin, _, end_text = part.partition("-")
        if begin.isdecimal() and len(begin) < 8 and len(end_text) < 8:
            end = int(end_text) if end_text.isdecimal() else int(begin)
            numbers += range(int(begin), min(end, int(begin) + MAX_TASKS) + 1)
    return numbers[:MAX_TASKS]


READER = LogReader(read=read_log)
