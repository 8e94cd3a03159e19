"""How launchers and agents of any kind report the end of a member by its number, as patterns and messages."""

from __future__ import annotations

import re

from allaboard.analysis.log_messages import KnownMessage
from allaboard.facts import Certainty

RANK_ENDS = (
    # "node-a: rank 7 died from signal 11 and dumped core": PALS; other launchers say it alike.
    re.compile(
        r"\b[Rr]ank:? #?(?P<rank>\d{1,7})\b[^\n]{0,60}?\b(?:died (?:from|with|of|by)|killed (?:by|with)"
        r"|terminated (?:by|with)|exited (?:on|with|due to)|crashed (?:on|with"
        r"|by))(?: uncaught)? signal:? ?#?(?P<signal>\d{1,2})\b"
    ),
    # The ring of daemons of MPICH2 (mpd).
    re.compile(
        r"exit status of rank (?P<rank>\d{1,7}): (?:killed by signal (?P<signal>\d{1,2})|return code "
        r"(?P<code>\d{1,3}))\b"
    ),
    # mpiexec of MPICH and Microsoft on Windows (smpd).
    re.compile(
        r"^(?P<rank>\d{1,7}): (?P<host>[\w.-]{1,255}): (?P<code>-?\d{1,10}): process (?P=rank)"
        r" exited without calling finalize",
        re.MULTILINE,
    ),
    # The handler of signals of MVAPICH2.
    re.compile(
        r"^\[(?P<host>[\w.-]{1,255}):mpi_rank_(?P<rank>\d{1,7})\]\[error_sighandler\] Caught error: "
        r"[^\n]{1,60}\(signal (?P<signal>\d{1,2})\)",
        re.MULTILINE,
    ),
)
"""Sentences about the end of a rank, with its number and the signal or code."""
_ENDED = (
    r"(?:exited|finished|completed|failed|terminated|ended) with (?:a )?(?:non-zero )?(?:exit ?(?:code"
    r"|status)|exitStatus|status|code)(?: of)?[ :=\[]{1,3}(?P<code>-?\d{1,5})\b"
)
TASK_ENDS = (
    # Agents of YARN (TonY) and of other services, by the task's job and index.
    re.compile(
        rf"\b(?P<job>chief|master|worker|ps|pserver|server|trainer|evaluator)[ :](?P<task>\d{{1,6}}) {_ENDED}"
    ),
)
"""Sentences about the end of a task, with the exit code of its container."""
CRASHES = frozenset((4, 6, 7, 8, 9, 11))
"""Signals with which a process ends of itself, or for want of memory; others are the launcher's own."""
_PADDLE = "its wording from the source of PaddlePaddle 2.3 to 3.0 (distributed/launch)"
_PADDLE_CONTAINER = r"Container rank (?P<rank>\d{1,7}) status failed cmd \[[^\n]{1,600}?\] code "
MESSAGES = (
    KnownMessage(
        key="PBS Job Id:",
        pattern=r"PBS Job Id: +(?P<job>\S{1,120})[^\n]*\n.{0,300}?Exec host: "
        r"+(?P<host>[\w.-]{1,255})(?:/\S*)?.{0,300}?"
        r"(?P<why>node failure|node (?:is )?down|Server could not connect to MOM)",
        rule="EXIT010",
        says="PBS ended job {job} because a node failed: {host}, or another of its hosts ({why})",
        fix="pbsnodes {host}   # state down or offline, and which note? tracejob -n 2 {job}; submit it "
        "again, and go "
        "on from the last checkpoint",
        certainty=Certainty.CERTAIN,
        explains=("LOG012",),
        sample="PBS Job Id: 2598.head\nJob Name:   train\nExec host:  gpu-2-17/11\njob deleted\nJob "
        "deleted at "
        "request of root@head\njob preempted (node failure)",
        source="its wording from users' reports of Torque's and Moab's mails",
    ),
    KnownMessage(
        key="status failed cmd [",
        pattern=_PADDLE_CONTAINER + r"-(?P<signal>\d{1,2}) log (?P<log>\S{1,300})",
        rule="EXIT001",
        says="rank {rank} was ended by signal {signal}, as Paddle's launcher reports",
        fix="tail -n 100 {log}   # the log of rank {rank}: its last lines say why; then the other "
        "workerlog.N beside it",
        explains=("LOG012", "EXIT003"),
        sample="Container rank 0 status failed cmd ['/usr/bin/python3', '-u', 'train.py'] code -6 log "
        "log/default.abc.0.log",
        source=_PADDLE,
    ),
    KnownMessage(
        key="status failed cmd [",
        pattern=_PADDLE_CONTAINER + r"(?P<code>\d{1,3}) log (?P<log>\S{1,300})",
        rule="EXIT003",
        says="rank {rank} ended with exit code {code}, as Paddle's launcher reports",
        fix="tail -n 100 {log}   # the log of rank {rank}: its last lines say why; then the other "
        "workerlog.N beside it",
        bare_end=True,
        sample="Container rank 2 status failed cmd ['/usr/bin/python3', '-u', 'train.py'] code 1 log "
        "log/workerlog.2",
        source=_PADDLE,
    ),
    KnownMessage(
        key="KilledWorker: ",
        pattern=r"KilledWorker: .{1,300}?<\w{1,40} '[^'\n]{0,100}',?(?: name: (?P<name>[^,>\s]{1,100}),)?",
        rule="EXIT001",
        says="worker {name} of Dask died as it ran a task on which other workers had died before",
        fix="read the log of {name}, around its end (cluster.get_logs(), the nanny's lines too): a killed "
        "process says nothing: dmesg -T | grep -i 'killed process' on its host; then more memory for a "
        "worker, or smaller parts",
        proves_not="that the task is at fault: a host without memory kills whatever runs",
        explains=("LOG012", "EXIT002"),
        sample="KilledWorker: (\"('read-csv-c07', 470)\", <Worker 'tls://', name: train-worker-5-afd, "
        "memory: 0, processing: 179>)",
        source="its wording from the source of Dask 2.0 to 2025 (distributed/scheduler.py)",
    ),
    KnownMessage(
        key="[DMLC] Task ",
        pattern=r"\[DMLC\] Task (?P<number>\d{1,6}) exited with status (?P<code>[1-9]\d{0,2})"
        r"\b.{0,300}?Container id: (?P<container>container_\w{1,80})",
        rule="EXIT003",
        says="task {number} (of workers and servers together) exited with code {code}, as YARN reports",
        fix="yarn logs -applicationId ID -containerId {container}   # its own words; the report has none "
        "of them",
        bare_end=True,
        sample="INFO dmlc.ApplicationMaster: [DMLC] Task 0 exited with status 1 Diagnostics:Exception from "
        "container-launch.\nContainer id: container_14_36_01_000002\nExit code: 1",
        source="its wording from the source of dmlc-core's tracker (ApplicationMaster.java)",
    ),
    KnownMessage(
        key="ABORT!!! Out of all ",
        pattern=r"ABORT!!! Out of all (?P<many>\d{1,6}) trainers, the trainer process with rank=\[(?P<rank>"
        r"[\d, ]{1,200})\] was aborted",
        rule="EXIT003",
        says="rank {rank} of {many} ended first, as Paddle's launcher reports",
        fix="tail -n 100 log/workerlog.N   # N: {rank}; its last lines say why",
        bare_end=True,
        sample="ABORT!!! Out of all 4 trainers, the trainer process with rank=[0, 3] was aborted. Please "
        "check its log.",
        source="its wording from the source of PaddlePaddle 1.6 to 2.2 (distributed/utils.py)",
    ),
    KnownMessage(
        key="terminated by the runtime due to failure in other processes",
        pattern=r"Process '(?P<victim>[\w-]{1,40} \d{1,6})' exited with code "
        r"-?\d{1,4}\b.{0,200}?terminated by the runtime due to failure in other processes",
        rule="LOG012",
        says="the service ended {victim} because another process on its node had failed: which one, this log "
        "does not say",
        fix="read the logs of the other processes of that node (azureml: "
        "user_logs/std_log_process_NN.txt, all of them): the one with an error of its own failed first",
        certainty=Certainty.CERTAIN,
        explains=("EXIT001",),
        sample="Process 'worker 0' exited with code -2 and error message 'Execution failed. Process "
        "killed by signal with name SIGKILL. It was terminated by the runtime due to failure in other "
        "processes on the same node.",
        source="as Azure Machine Learning writes it",
    ),
)
"""Reports that say more than a number: the log to read, or that the member is a victim."""
