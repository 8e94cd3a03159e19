"""What to do next after the end of a process, by the words of who reports it."""

from __future__ import annotations

import re
import signal

from allaboard.analysis.log_ends.advice_by_failure import advice_by_failure
from allaboard.analysis.log_ends.advice_by_words import advice_by_words
from allaboard.analysis.log_ends.named_tasks import find_tasks
from allaboard.analysis.log_ends.program_advice import program_advice
from allaboard.diagnosis.wordings.slurm_reasons import slurm_advice

COLLECT_LOGS = "collect the logs of all members and of the launcher: allaboard diagnose LOG..."
READ_LOG = (
    "read what stands before it in this log; PYTHONFAULTHANDLER=1 shows the Python line at the next "
    "run"
)
ASK_WHO_KILLED = (
    "on its host: dmesg -T | grep -iE 'killed process|oom'; then ask the batch system who ended it"
)
ASK_WHO_ENDED = (
    "read the logs of the other processes first: a launcher ends them all when one has failed; else ask the "
    "batch system who ended it (sacct, kubectl describe pod)"
)
_NO_THREAD = re.compile(r"pthread_create|[Tt]hread creation|Resource temporarily unavailable")
_THREADS = "on its host: ulimit -u; cat /sys/fs/cgroup/pids.max   # threads count as processes"
_GPU_FAULT = re.compile(
    r"CUDA_ERROR_(?:ECC_UNCORRECTABLE|NVLINK_UNCORRECTABLE|HARDWARE_STACK_ERROR|LAUNCH_FAILED|ILLEGAL_\w+)"
    r"|uncorrectable (?:ECC|NVLink) error"
)
_GPU = "on that host: nvidia-smi; dmesg -T | grep -i xid; then run once without that node"
_NAMED_MEMBER = re.compile(
    r"\b(?:worker|host|node|peer|pod|server|address)\b:? '?(?P<name>[A-Za-z0-9][\w.-]{1,252}):\d{2,5}\b"
)
"""The address of another member in the record of an error."""
_LOOPBACK = re.compile(r"\b127\.\d{1,3}\.\d{1,3}\.\d{1,3}\b(?=[^\n]{0,40}\bloopback)")


_TRANSPORTS = (
    (
        re.compile(r"\bUCX +(?:ERROR|FATAL)\b"),
        "on the host that wrote it: ucx_info -d; env | grep UCX_; UCX_TLS=tcp,sm,self for one run (mpirun -x "
        "UCX_TLS) tells whether InfiniBand or RoCE is at fault; UCX_LOG_LEVEL=info says more",
    ),
    (
        re.compile(r"\blibfabric:\d+:"),
        "on the host that wrote it: fi_info; env | grep FI_; FI_PROVIDER=tcp for one run tells whether the "
        "fabric is at fault; FI_LOG_LEVEL=warn says more",
    ),
)
"""The records of transports below MPI, and how to tell what fails there."""


def with_first_step(fix: str, words: str) -> str:
    """Return the advice, with a first step by the way in which the ``words`` say that something failed, if it
    only says which logs to read."""
    if fix.startswith(("collect ", "look at ")) and (first_step := advice_by_failure(words)):
        return f"{first_step}; then {fix}"
    return fix


def transport_advice(line: str) -> str:
    """Return what to try about a record of a transport below MPI; "" if the line is none."""
    return next((advice for record, advice in _TRANSPORTS if record.search(line[:200])), "")


def record_advice(message: str, host: str) -> str:
    """Return where to look next: at the member that a record of an error names, else at the ``host`` that
    wrote it; "" if neither is known."""
    if tasks := find_tasks(message):
        job, index = tasks[0]
        return f"read the log of {job} {index}, which it names; then {COLLECT_LOGS}"
    if loopback := _LOOPBACK.search(message):
        return (
            f"getent ahosts $(hostname)   # on each host: {loopback[0]} is that host itself; take its name "
            "off the line of 127.0.1.1 in /etc/hosts, or give the address of the interface that the others "
            "reach"
        )
    if member := _NAMED_MEMBER.search(message):
        name = member["name"]
        name = name.partition(".")[0] if not name[0].isdigit() else name
        return f"read the log of {name}, which it names (a pod: kubectl logs {name}); then {COLLECT_LOGS}"
    if host:
        return (
            f"look at {host} first, which wrote it: its log, dmesg -T | tail; then {COLLECT_LOGS}"
        )
    return ""


def abort_advice(words: str) -> str:
    """Return what to do about a process that aborted itself with these words."""
    if _NO_THREAD.search(words):
        return _THREADS
    if _GPU_FAULT.search(words):
        return _GPU
    advice = advice_by_words(words)
    return f"{advice}; {READ_LOG}" if advice else READ_LOG


def launcher_advice(line: str) -> str:
    """Return what to do about this error of a launcher or a shell."""
    if "unrecognized arguments: --local" in line:
        return "read LOCAL_RANK from the environment, or accept --local-rank and --local_rank alike"
    if advice := slurm_advice(line):
        return advice
    if not line.startswith("ssh: ") and (advice := program_advice(line)):
        return advice
    if match := re.search(r"^ssh: connect to host (\S+) port (\d+)", line):
        return f"from the launcher's host: nc -vz {match[1]} {match[2]}; does sshd listen there?"
    if match := re.search(r"Could not resolve hostname ([^\s:]{1,255})", line):
        return (
            f"getent hosts {match[1]}   # on the launcher's host, in its pod; no output: correct the "
            "hostfile or the name service (on Kubernetes: has the pod come up, and a headless service "
            "of its name?)"
        )
    if match := re.search(
        r"(?<![\w.-])(?:[\w.-]{1,64}@)?([\w.-]{1,255}): Permission denied \(", line
    ):
        return (
            f"ssh -o BatchMode=yes {match[1]} hostname   # as the same user, without a password: its key in "
            "that host's authorized_keys, and ~/.ssh there 0700 and of that user (sshd's StrictModes)"
        )
    if match := re.search(r"^(\S+) +\S+ +OOMKilled", line):
        return (
            f"kubectl describe pod {match[1]}   # its limit of memory; then raise it, or need less"
        )
    if match := re.search(r"sh: (?:line \d+: )?(\S{1,200}): (?:command )?not found", line):
        return (
            f"which {match[1]}; echo $PATH   # on that host, in the shell that the launcher starts: ssh HOST "
            f"'which {match[1]}'. It reads no conda and no .bashrc: give the whole path, or python -m"
        )
    if match := re.search(r"got signal: (\d+)", line):
        number = int(match[1])
        if number == signal.SIGHUP:
            return "its terminal was closed: start it in a batch job, in tmux, or with nohup setsid"
        if number == signal.SIGTERM:
            return (
                "ask who ended it: the batch system (sacct, kubectl describe pod), a preempted machine, or a "
                "person; then start it again from its last checkpoint"
            )
    first = advice_by_words(line)
    return f"{first}; then {COLLECT_LOGS}" if first else with_first_step(COLLECT_LOGS, line)
