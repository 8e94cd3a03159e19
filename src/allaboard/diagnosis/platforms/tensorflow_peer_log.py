"""What TensorFlow's sessions, strategies and TPU estimators write of a task that they lost or wait for."""

from __future__ import annotations

import re

import msgspec

from allaboard.analysis.log_ends.post_traceback_output import trains_on_after
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.tensorflow_session_messages import SESSION_WAITS
from allaboard.facts import Exhibit, Heard, Testimony, Who

_TASK = r"/job:(?P<job>(?!localhost\b)\w+)/(?:replica:\d+/)?task:(?P<task>\d+)"
"""A task of another process: a process calls itself localhost."""
_LOSS = (
    r"Socket closed|Connection reset|recvmsg:|Endpoint read failed|Broken pipe|OS Error|GOAWAY"
    r"|keepalive watchdog timeout|failed to connect to all addresses|Connect Failed|Stream removed"
    r"|[Cc]ould not parse rpc response|Connection timed out"
)
_LOST_FIX = (
    "read the log of {job} {task} first, and on its host dmesg -T | grep -i kill (a pod: kubectl describe "
    "pod; a TPU: gcloud compute tpus tpu-vm list, was it preempted?)"
)
_SESSION = "its wording from the source of TensorFlow 1.0 to 2.21 (grpc_util.h, master_session.cc)"
MIN_STEPS_AFTER = 2
"""Lines about loss or steps after a loss or a wait that show that the training went on."""
MESSAGES = (
    KnownMessage(
        key="From /job:",
        pattern=rf"\bFrom {_TASK}:\s{{1,4}}(?:\{{\{{[^}}\n]{{1,200}}\}}\}} "
        rf"?)?(?P<why>(?:{_LOSS})[^\n]{{0,60}})",
        rule="EXIT005",
        says="{job} {task} went away in the middle of a call ({why})",
        fix=_LOST_FIX,
        proves_not="that it began there: it may itself have ended because of another",
        awaits=True,
        sample="UnavailableError: From /job:worker/replica:0/task:47:\nSocket closed",
        source=_SESSION,
    ),
    KnownMessage(
        key="Deadline Exceeded\n",
        pattern=rf"Deadline Exceeded\n(?:[^\n]{{0,200}}\n)?[^\n]{{0,120}}remote target {_TASK}"
        r"(?! while calling /\S{0,80}/(?:Shutdown|Heartbeat))"
        r"(?![^\n]*\n[^\n]{0,600}(?:Socket closed|Connection re|remote target))",
        rule="EXIT005",
        says="{job} {task} did not answer in time",
        fix="read the log of {job} {task}: did it start, and does it still run? While it hangs, on its host: "
        "py-spy dump --pid PID; from here: nc -vz HOST PORT, its address in TF_CONFIG",
        proves_not="that it ended: one that has not started, is stuck, or is behind a firewall looks the "
        "same",
        awaits=True,
        sample="E base_collective_executor.cc:249] BaseCollectiveExecutor::StartAbort DEADLINE_EXCEEDED: "
        "Deadline Exceeded\nAdditional GRPC error information from remote target "
        "/job:worker/replica:0/task:0:\n"
        ':{"created":"@1685013057.9","description":"Deadline Exceeded","grpc_status":4}',
        source=_SESSION,
    ),
    KnownMessage(
        key="lame workers found: ",
        pattern=rf"ShutdownHook: lame workers found: HeartbeatManager\({_TASK}",
        rule="EXIT005",
        says="{job} {task} of the TPU is about to go away: its host was told to stop (a preemption or a "
        "maintenance), and the program saves a checkpoint",
        fix="gcloud compute tpus list   # is the TPU of {job} {task} PREEMPTED? Create it anew and start "
        "again from the last checkpoint",
        awaits=True,
        sample="INFO:tensorflow:ShutdownHook: lame workers found: "
        "HeartbeatManager(/job:worker/replica:0/task:0/device:CPU:0)",
        source="its wording from the source of TensorFlow 1.11 to 2.21 (tpu/session_support.py)",
    ),
)
MASTER_INIT = KnownMessage(
    key="Master init: Unavailable: ",
    pattern=r"Master init: Unavailable: (?P<why>[^\n]{1,80})",
    rule="EXIT005",
    says="no session could begin: a task of the cluster could not be reached ({why})",
    fix="read the logs of all other tasks, the parameter servers (ps) first: which one did not start?",
    proves_not="which task it was, nor that it had ended: a firewall, a wrong address and a proxy "
    "(http_proxy) look the same",
    awaits=True,
    sample="2018-03-20 02:11:18.4: E tensorflow/core/distributed_runtime/master.cc:269] Master init: "
    "Unavailable: OS Error",
    source="its wording from the source of TensorFlow 1.0 to 2.21 (master.cc)",
)
DISPATCHER = KnownMessage(
    key=" to dispatcher: ",
    pattern=r"Failed to send (?P<what>task updates|worker heartbeat|heartbeat)[^\n]{0,40} to dispatcher: "
    r"(?P<why>[^\n]{1,120})",
    rule="JOIN005",
    says="a worker of tf.data's service is refused by its dispatcher again and again ({why}): the dispatcher "
    "was restarted and does not know it, or is gone",
    fix="restart the dispatcher and all its workers together, with "
    "DispatcherConfig(fault_tolerant_mode=True, "
    "work_dir=DIR on lasting storage); read the dispatcher's log: why did it start anew?",
    proves_not="that the dispatcher was restarted: one that forgot a task looks the same",
    sample="W tensorflow/core/data/service/worker_impl.cc:311] Failed to send task updates to dispatcher: "
    "Not found: Failed to send worker update: Task 4003 not found",
    source="its wording from the source of TensorFlow 2.4 to 2.21 (data/service/worker_impl.cc)",
)
MIN_REFUSALS = 3
"""Refusals with which the log ends: one alone passes."""
_CHANNELS = re.compile(r"GrpcChannelCache for job (?P<job>\w+) -> \{(?P<members>[^}\n]{1,4000})\}")
_MEMBER = re.compile(r"(?P<index>\d{1,7}) -> (?P<host>[^,\s:]{1,255}):(?P<port>\d{1,5})")
MAX_TRIED_ADDRESSES = 4
"""Addresses of other tasks that the next step tries."""
EVALUATOR = KnownMessage(
    key="ParameterServerStrategyV2 is now connecting to cluster",
    pattern=r"ParameterServerStrategyV2 is now connecting to cluster with cluster_spec: "
    r"ClusterSpec\(\{[^\n]{0,2000}?'(?P<job>evaluator)': \[",
    rule="JOIN001",
    says="the coordinator waits for evaluator 0, which starts no server of the cluster: in TensorFlow 2 the "
    "evaluator is not part of it",
    fix="take 'evaluator' out of the cluster in TF_CONFIG, on all tasks, before the strategy is made   # it "
    "evaluates checkpoints by itself; or an in-line evaluation by the coordinator",
    proves_not="that it still waits: a log that was cut looks the same",
    awaits=True,
    sample="INFO:tensorflow:ParameterServerStrategyV2 is now connecting to cluster with cluster_spec: "
    "ClusterSpec({'chief': ['a:1'], 'evaluator': ['b:1'], 'ps': ['c:1'], 'worker': ['d:1']})",
    source="its wording from the source of TensorFlow 2.3 to 2.21 (parameter_server_strategy_v2.py)",
)
_OF_A_START = re.compile(
    r"GrpcChannelCache|Started server|grpc_server_lib|cpu_feature_guard|still waiting|ClusterSpec|^\s*$"
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    heard = tuple(
        h
        for message in MESSAGES
        if message.key in text and not trains_on_after(text, message.key, MIN_STEPS_AFTER)
        for h in find_known_messages(exhibit, (message,))
    )
    is_told_by_wait = SESSION_WAITS in text[: text.find(MASTER_INIT.key)]
    if (
        MASTER_INIT.key in text
        and not is_told_by_wait
        and not trains_on_after(text, MASTER_INIT.key, MIN_STEPS_AFTER)
    ):
        heard += tuple(
            _with_addresses(h, text) for h in find_known_messages(exhibit, (MASTER_INIT,))
        )
    final_lines = text.rstrip().split("\n")[-MIN_REFUSALS:]
    if len(final_lines) == MIN_REFUSALS and all(map(DISPATCHER.compiled.search, final_lines)):
        heard += find_known_messages(exhibit, (DISPATCHER,))[-1:]
    if EVALUATOR.key in text and _ends_in_its_start(text):
        heard += find_known_messages(exhibit, (EVALUATOR,))
    return Testimony(heard=heard) if heard else None


def _with_addresses(heard: Heard, text: str) -> Heard:
    """Return the message with the addresses of the other tasks that the process listed at its start."""
    others = [
        (channels["job"], member)
        for channels in _CHANNELS.finditer(text)
        for member in _MEMBER.finditer(channels["members"])
        if member["host"] not in ("localhost", "127.0.0.1")
    ]
    if not others:
        return heard
    commands = "; ".join(f"nc -vz {m['host']} {m['port']}" for _, m in others[:MAX_TRIED_ADDRESSES])
    names = ", ".join(f"{job} {int(m['index'])}" for job, m in others[:MAX_TRIED_ADDRESSES])
    about = tuple(Who(job=job, index=int(m["index"])) for job, m in others)
    return msgspec.structs.replace(
        heard,
        says=heard.says.replace(
            "a task of the cluster", f"{names}" if len(others) == 1 else f"one of {names}"
        ),
        fix=f"from this host, of {names}: {commands}   # refused: read the log of that task; no answer: a "
        "firewall or a wrong address; if both connect: unset http_proxy https_proxy",
        about=about if len(others) == 1 else (),
    )


def _ends_in_its_start(text: str) -> bool:
    """Return True if nothing after the strategy's connection shows that the cluster came together."""
    later = text[text.rfind(EVALUATOR.key) :].split("\n")[1:]
    return all(map(_OF_A_START.search, later))


READER = LogReader(read=read_log)
