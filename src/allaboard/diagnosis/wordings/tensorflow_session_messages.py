"""Known messages of TensorFlow's sessions: who waits for whom, and which server was lost."""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage
from allaboard.facts import Severity

SESSION_WAITS = "CreateSession still waiting for response from worker"
_CHIEF_FIX = (
    "read the log of the chief (chief 0, else worker 0): did it start, and does it initialise or restore the "
    "model? In TF_CONFIG the job must be called chief where tf.distribute or an Estimator reads it (Cloud ML "
    "wrote 'master'), and is_chief must be true in exactly one task"
)
_SESSIONS = "its wording from the source of TensorFlow 1.0 to 2.15 (session_manager.py, monitored_session.py)"
WAITS = KnownMessage(
    key="Waiting for model to be ready",
    pattern=r"Waiting for model to be ready[^\n]{0,60}?Variables not initialized: (?P<names>[^\n]{1,60})",
    rule="PS002",
    says="a worker still waits for the chief to initialise the variables when its log ends",
    fix=_CHIEF_FIX,
    proves_not="that the chief has not started: one that loads data first, or is of another cluster, looks "
    "the same",
    severity=Severity.WARNING,
    awaits=True,
    sample="INFO:tensorflow:Waiting for model to be ready.  Ready_for_local_init_op:  Variables not "
    "initialized: global_step, dense/kernel, ready: None",
    source=_SESSIONS,
)
GAVE_UP = KnownMessage(
    key="Session was not ready after waiting",
    pattern=r"Session was not ready after waiting (?P<seconds>\d+) secs",
    rule="PS002",
    says="the chief did not initialise the variables within {seconds} s, for which a worker waited",
    fix=f"{_CHIEF_FIX}; if it is only slow: MonitoredTrainingSession(max_wait_secs=7200)",
    proves_not="that the chief has not started: one that is slow, or of another cluster, looks the same",
    awaits=True,
    sample="DeadlineExceededError: Session was not ready after waiting 30 secs.",
    source=_SESSIONS,
)
LOST = KnownMessage(
    key="may be due to a preemption ",
    pattern=r"An error was raised[^\n]{0,80}may be due to a preemption (?:in"
    r"|of) a connected worker[^\n]{0,500}?Error: (?P<why>[^\n]{1,120})",
    rule="EXIT005",
    says="the session lost a parameter server or another worker again and again, before it trained ({why})",
    fix="read the logs of the parameter servers (ps) first, on their hosts dmesg -T | grep -i kill, of pods "
    "kubectl describe pod: a ps that runs out of memory or whose link is full is lost to all workers; then "
    "more of them",
    proves_not="which task it was, nor that it ended: a full network looks the same",
    awaits=True,
    sample="INFO:tensorflow:An error was raised. This may be due to a preemption in a connected worker or "
    "parameter server. The current session will be closed and a new session will be created. Error: OS Error",
    source=_SESSIONS,
)
STORAGE = KnownMessage(
    key=" retry attempts failed. The last failure: ",
    pattern=r"(?:From /job:(?P<job>\w+)/(?:replica:\d+/)?task:(?P<task>\d+"
    r"):\s{1,400})?All (?P<count>\d{1,4}) retry attempts failed\. The last failure: "
    r"(?P<why>[^\n]{1,120}?\d{3}\b|[^\n]{1,120})(?:.{0,600}?(?P<path>(?:gs|s3|hdfs)://\S{1,300}))?",
    rule="LOG013",
    says="the storage failed, {count} attempts at a write or a read: {why} {path}",
    fix="the storage service, not the job: its status page and quotas (gsutil ls -l of that path); fewer and "
    "larger writes at once (save less often, not all hosts together), then start again from the last "
    "checkpoint",
    explains=("EXIT005", "EXIT002", "LOG012"),
    sample="From /job:worker/replica:0/task:1:\nAll 10 retry attempts failed. The last failure: Unavailable: "
    "Error executing an HTTP request: HTTP response code 503\n when resuming upload gs://b/model.ckpt-60_temp/",
    source="its wording from the source of TensorFlow 1.3 to 2.21 (retrying_utils.cc)",
)
UNREACHED = tuple(
    KnownMessage(
        key="failed to connect to 'ipv",
        pattern=r"failed to connect to 'ipv[46]:(?P<host>[\w.:%\[\]]{1,60}):(?P<port>\d+)': " + why,
        rule=rule,
        says="it still could not connect to {host} port {port} when its log ends: {why}",
        fix="from its host: nc -vz {host} {port}; read the log of the task that the cluster has there; a "
        "timeout is mostly a firewall or a wrong address, a refusal a task that does not run",
        proves_not="that it will not come: gRPC tries again",
        severity=Severity.WARNING,
        awaits=True,
        sample="E0625 12:21:16.511111376    3825 tcp_client_posix.c:191]     failed to connect to "
        f"'ipv4:192.0.2.7:30002': {sample}",
        source="its wording from the source of gRPC 1.0 to 1.8 (tcp_client_posix.c), in TensorFlow 1",
    )
    for rule, why, sample in (
        ("NET003", r"(?P<why>timeout occurred)", "timeout occurred"),
        (
            "NET002",
            r"socket error: (?P<why>connection refused)",
            "socket error: connection refused",
        ),
    )
)
