"""Messages of TensorFlow: its coordination service, gRPC servers, collectives, TF1 sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import msgspec

from allaboard.analysis.log_ends.awaited_tasks import join_waits
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Heard, Severity, Testimony

_RECORDED = "recorded, TensorFlow 2.21.0"
_WAITING = re.compile(r"Waiting for (\d+)/(\d+) tasks to connect")
_TASK = r"/job:(?P<job>(?!localhost\b)\w+)/(?:replica:\d+/)?task:(?P<task>\d+)"
"""A task of another process: a process calls itself localhost."""
_RELAY = re.compile(
    r"remote target "
    + _TASK
    + r"(?: while calling [\w./]+)?:\s*\n?:[^\n]{0,200}Error received from peer[^\n]{0,400}remote target"
)
"""Matches a task that passes on that it could not reach another one."""


_SESSION_RULE = "PS003"
"""The rule of a session that waits for tasks."""
_SESSION_WAITS = "CreateSession still waiting for response from worker"
MIN_TRAINED_LINES = 2
"""Lines of a training after the wait of a session that show that it began."""


def _restarted_in_session(key: str, pattern: str, sample: str) -> KnownMessage:
    """Return one wording of a server that does not know a session of its former process."""
    return KnownMessage(
        key=key,
        pattern=pattern,
        rule="JOIN005",
        says="{job} {task} was restarted while the session went on",
        fix="read the log of {job} {task}'s first process: why it ended; MonitoredTrainingSession, unlike "
        "Supervisor and Session, starts again from the checkpoint by itself",
        proves_not="why it ended: the server that answers now knows nothing of the session",
        sample=sample,
        source="its wording from the source of TensorFlow 1.3 to 2.21 (session_mgr.cc, grpc_util)",
    )


STRAGGLERS = KnownMessage(
    key="Example stragglers",
    pattern=r"Example stragglers:\s*" + _TASK,
    rule="JOIN001",
    says="the leader still waited for {job} {task} when its log ends",
    fix="read the log of {job} {task}; compare the cluster in its TF_CONFIG with the leader's",
    proves_not="that {job} {task} is not running: one that looks for the leader at a wrong address "
    "looks the same; nor that it is the only one: the leader gives examples",
    awaits=True,
    sample="I0000 00:00:1795264185.443512 27251 coordination_service.cc:505] Example stragglers:\n"
    "/job:worker/replica:0/task:2",
    source=_RECORDED,
)
MESSAGES = (
    KnownMessage(
        key=_SESSION_WAITS,
        pattern=r"CreateSession still waiting for response from worker: "
        r"/job:(?P<job>worker|chief|master)/(?:replica:\d+/)?task:(?P<task>\d+)",
        rule="PS003",
        says="the session waited for {job} {task}, another task that trains: no device filters are set",
        fix="tf.ConfigProto(device_filters=['/job:ps', '/job:worker/task:N'])   # N: this worker's "
        "index; the "
        "session then waits for the servers alone. Or read the log of {job} {task}, and start it again",
        proves_not="that {job} {task} is not running: a wrong address or a firewall looks the same",
        sample="2017-09-01 09:34:05.787286: I tensorflow/core/distributed_runtime/master.cc:193] "
        "CreateSession still waiting for response from worker: /job:worker/replica:0/task:12",
        source="its wording from the source of TensorFlow 1.0 to 2.21 (master.cc)",
    ),
    KnownMessage(
        key=_SESSION_WAITS,
        pattern=r"CreateSession still waiting for response from worker: "
        r"/job:(?P<job>(?!worker/|chief/|master/)\w+)/(?:replica:\d+/)?task:(?P<task>\d+)",
        rule="PS003",
        says="the session waited for {job} {task}",
        fix="read the log of {job} {task}; compare its address in TF_CONFIG with where it listens",
        proves_not="that {job} {task} is not running: a wrong address or a firewall looks the same",
        sample="I0000 00:00:1795264350.799772 30540 master.cc:278] CreateSession still waiting for "
        "response from worker: /job:ps/replica:0/task:0",
        source=_RECORDED,
    ),
    KnownMessage(
        key="No address added out of total",
        # With its reason in the same line, grpc_bind_log reads it.
        pattern=r"No address added out of total \d+ resolved for '(?P<host>[^']*):(?P<port>\d+)'"
        r"(?![^\n]{0,900}(?:Cannot assign requested|already in use|Only one usage))",
        rule="NET005",
        says="port {port} was taken when a task wanted to listen there",
        fix="ss -ltnp 'sport = :{port}'   # who holds it? end that program, or take another port in "
        "TF_CONFIG",
        proves_not="who holds it: a second process with this task index, an earlier job and another "
        "program look the same",
        sample="E0000 00:00:1795264219.970783 28025 add_port.cc:83] Failed to add port to server: "
        "No address added out of total 1 resolved for '0.0.0.0:42013'",
        source=_RECORDED,
    ),
    KnownMessage(
        key="Address already in use",
        pattern=r"tcp_server_posix\.c\w*:\d+\]\s+bind addr=\S+?:(?P<port>\d+): Address already in use"
        r"(?=.{0,600}?No address added)",
        rule="NET005",
        says="port {port} was taken when a task wanted to listen there",
        fix="ss -ltnp 'sport = :{port}'   # who holds it? end that program, or take another port in "
        "the cluster",
        proves_not="who holds it: a second process with this task index, an earlier job and another "
        "program look the same",
        sample="E0727 11:38:35.762428930   22857 tcp_server_posix.c:284]     bind addr=[::]:41223: Address "
        "already in use\nE0727 11:38:35.7   22857 server_chttp2.c:119]        No address added out of "
        "total 1 "
        "resolved",
        source="its wording from the source of gRPC 0.13 to 1.0, in TensorFlow 0.8 to 1.0",
    ),
    KnownMessage(
        key="current incarnation doesn't match",
        pattern=r"Device "
        + _TASK
        + r"/\S+ current incarnation doesn't match with one in the group",
        rule="JOIN005",
        says="{job} {task} came a second time: it was restarted while the others went on, or two processes "
        "claim to be it",
        fix="read the log of {job} {task}'s first process: why it ended; then restart all of them together",
        proves_not="which of the two it was: the group knows that the process is another, not why",
        sample="Bad status from CompleteGroupDistributed: Failed precondition: Device /job:worker/replica:0/"
        "task:1/device:GPU:0 current incarnation doesn't match with one in the group. This usually means "
        "this "
        "worker has restarted but the collective leader hasn't, or this worker connects to a wrong cluster.",
        source="its wording from the source of TensorFlow 2.4 to 2.21 (collective_param_resolver)",
    ),
    KnownMessage(
        key="expects a different device incarnation",
        pattern=r"expects a different device incarnation: \d+ vs\. \d+\. Your worker job "
        r'(?:\("|(?!\(").{0,900}?send_device=\\?")' + _TASK,
        rule="JOIN005",
        says="{job} {task} was restarted while the others went on, or two processes claim to be it",
        fix="read the log of {job} {task}'s first process: why it ended; see that no other runs: "
        "ps -eo pid,lstart,args | grep python; then restart all of them together",
        proves_not="which of the two it was: the receiver knows that the process is another, not why",
        sample="AbortedError: RecvTensor expects a different device incarnation: 11 vs. 12. Your worker job "
        '("/job:worker/replica:0/task:1") was probably restarted. Check your worker job for the reason why '
        "it "
        "was restarted.",
        source="its wording from the source of TensorFlow: the task is in the message since 1.13, and in the "
        "operation's send_device before",
    ),
    _restarted_in_session(
        "From /job:",
        r"From " + _TASK + r":\s+[^\n]*(?:handle is not found|just restarted)",
        "AbortedError: From /job:ps/replica:0/task:0:\nSession handle is not found: f8368e3b7d417955. "
        "Possibly "
        'this worker ("/job:localhost/replica:0/task:0") just restarted.',
    ),
    _restarted_in_session(
        "andle is not found: ",
        r"(?:Session|Graph) handle is not found: [^\n]{1,60}?\(\"?(?!/job:localhost)"
        + _TASK
        + r"\"?\) just restarted",
        "AbortedError: Session handle is not found: f8368e3b7d417955. Possibly this worker "
        '("/job:ps/replica:0/'
        'task:0") just restarted.',
    ),
    KnownMessage(
        key="joining a group with size",
        pattern=_TASK
        + r"/device:\S+ is joining a group with size ?(?P<own>\d+), but that group has "
        r"size (?P<size>\d+)",
        rule="JOIN006",
        says="{job} {task} counts {own} members, the others {size}",
        fix="compare the cluster in TF_CONFIG of {job} {task} with the others'",
        proves_not="which of the two numbers is right: the first to come sets the size",
        sample="tensorflow.python.framework.errors_impl.InternalError: Collective ops is aborted by: "
        "Device /job:worker/replica:0/task:1/device:CPU:0 is joining a group with size2, but that "
        "group has size 3 (group_key=1)",
        source=_RECORDED,
    ),
    KnownMessage(
        key="DEADLINE_EXCEEDED",
        pattern=r"DEADLINE_EXCEEDED: [^\n]*\n\s*RPC: /tensorflow\.CoordinationService/Heartbeat",
        rule="LOG002",
        says="the leader (worker 0, or the coordinator) answered no more heartbeats",
        fix="look at the leader: ps -o stat= -p PID says T where it is stopped; then its log",
        proves_not="that it crashed: a stopped or swapping process and a broken link look the same",
        awaits=True,
        sample="E0000 00:00:1795264270.377140 29799 base_collective_executor.cc:252] "
        "BaseCollectiveExecutor::StartAbort DEADLINE_EXCEEDED: Deadline Exceeded\n\n"
        "RPC: /tensorflow.CoordinationService/Heartbeat",
        source=_RECORDED,
    ),
    KnownMessage(
        key="remote target",
        # Who is done says goodbye to a leader that may be done, too: TensorFlow shuts down anyway.
        # At a coordinator's healthy end, handles that are left are told with a server that is gone already.
        pattern=r"(?<!gets an error: Socket closed\n)Additional GRPC error information from remote target "
        + _TASK
        + r"(?! while calling /\S{0,80}/ShutdownTask)(?: while calling [\w./]+)?:\s*"
        # Before TensorFlow 2.13 gRPC told it as JSON, with the files and lines of its own code.
        # Who passes on another's failure has answered.
        r"(?![^\n]{0,600}Additional GRPC error information from remote target)"
        # Who could not be reached at all may never have been there: the next message says that.
        r"(?![^\n]{0,200}\"failed to connect to all addresses)"
        r"(?=[^\n]{0,400}(?:Socket closed|Connection reset|Connection refused))",
        rule="EXIT005",
        says="{job} {task} went away in the middle of a call",
        fix="read the log of {job} {task} first, and the kernel's: dmesg -T | grep -i kill",
        proves_not="that it began there: it may itself have ended because of another",
        awaits=True,
        sample="Additional GRPC error information from remote target /job:worker/replica:0/task:1 while "
        "calling /tensorflow.WorkerService/RecvBuf:\n"
        ':UNKNOWN:Error received from peer  {{grpc_message:"recvmsg:Connection reset by peer", '
        "grpc_status:14}}".replace("{{", "{").replace("}}", "}"),
        source=_RECORDED,
    ),
    KnownMessage(
        key="failed to connect to all addresses",
        # Who passes on another's failure has answered: an error was received from it.
        pattern=r"failed to connect to all addresses[^\n]*\n[^\n]*remote target "
        + _TASK
        + r"(?! while calling /\S{0,80}/ShutdownTask)"
        r"(?![^\n]*\n:[^\n]{0,200}Error received from peer[^\n]{0,400}remote target)",
        rule="EXIT005",
        says="{job} {task} did not answer",
        fix="read the log of {job} {task}: did it start, and does it still run? Compare its address in "
        "TF_CONFIG with where it listens: ss -ltnp on its host",
        proves_not="that it ended: a wrong address, a firewall and one that has not started look the same",
        awaits=True,
        sample="UnavailableError: failed to connect to all addresses; last error: UNKNOWN: "
        "ipv4:10.0.0.9:2222: Failed to connect to remote host: Connection refused\nAdditional GRPC error "
        "information from remote target /job:ps/replica:0/task:1 while calling "
        "/tensorflow.eager.EagerService/CreateContext:\n",
        source="its wording from the source of gRPC and TensorFlow 2.21",
    ),
    KnownMessage(
        key="Collective instance",
        pattern=r"Collective instance (?P<number>\d+) expected type (?P<want>\d+) and data[_ ]type "
        r"(?P<kind>\w+) but got type (?P<got>\d+) and data[_ ]type (?P<other>\w+)",
        rule="LOG003",
        says="at collective {number} members called different operations (type {want} of data type {kind}, "
        "and "
        "type {got} of data type {other})",
        fix="compare the workers' code and data: another number of batches, another model, a metric or "
        "checkpoint that one worker makes alone, or variables made in another order",
        proves_not="which member is wrong: the first to come sets the type",
        sample="InternalError: Collective ops is aborted by: Collective instance 285 expected type 0 and "
        "data_type 9 but got type 0 and data_type 1",
        source=_RECORDED,
    ),
    KnownMessage(
        key="found no source for broadcast",
        pattern=r"Instance (?P<number>\d+) found no source for "
        r"broadcast\.[^\n]{0,80}?group_size=(?P<members>\d+)",
        rule="LOG003",
        says="in broadcast {number} all {members} members receive, and none sends",
        fix="let one member of the group call broadcast_send (the task whose value it is) and the others "
        "broadcast_recv: compare the condition on the task in the code",
        proves_not="which member should send",
        sample="BaseCollectiveExecutor::StartAbort Internal: Instance 0 found no source for broadcast.  This "
        "could mean that there were group_size=2 BcastRecvs but no BcastSend.",
        source="its wording from the source of TensorFlow 1.10 to 2.21 (collective_param_resolver_local.cc)",
    ),
    KnownMessage(
        key="Shape mismatch in the collective instance",
        pattern=r"Shape mismatch in the collective instance (?P<number>\d+)\. Op at device \S+ expected "
        r"shape (?P<want>\[[\d,]*\]) but another member in the group expected shape "
        r"(?P<got>\[[\d,]*\])",
        rule="LOG003",
        says="at collective {number} members passed other shapes ({want} and {got})",
        fix="compare the workers' code and data: another model, another batch size, or a collective that "
        "only some workers make",
        proves_not="which member is wrong: the first to come sets the shape",
        sample="Collective ops is aborted by: Shape mismatch in the collective instance 100. Op at device "
        "/job:worker/replica:0/task:1/device:CPU:0 expected shape [32,128] but another member in the group "
        "expected shape [32,64]. This is likely due to different input shapes at different members of the "
        "collective op.",
        source=_RECORDED,
    ),
)
MIN_CHECKS = 2
"""Checks without success in a row: the first one is made as soon as a worker begins."""
MIN_LOSSES = 2
"""Sessions in a row that ended before they trained."""
_TRAINED = re.compile(
    r"\bloss\b|global_step/sec|\bstep ?= ?\d|[Ss]aving checkpoints|\bexamples/sec|images/sec"
)
_WENT_ON = re.compile(r"Running local_init_op|" + _TRAINED.pattern)
"""Written once the chief has initialised the variables."""
_CHIEF_FIX = (
    "read the log of the chief (chief 0, else worker 0): did it start, and does it initialise or restore the "
    "model? In TF_CONFIG the job must be called chief where tf.distribute or an Estimator reads it (Cloud "
    "ML wrote "
    "'master'), and is_chief must be true in exactly one task"
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
    "initialized: "
    "global_step, dense/kernel, ready: None",
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
    pattern=r"An error was raised[^\n]{0,80}may be due to a preemption (?:in|of) a connected "
    r"worker[^\n]{0,500}?"
    r"Error: (?P<why>[^\n]{1,120})",
    rule="EXIT005",
    says="the session lost a parameter server or another worker again and again, before it trained ({why})",
    fix="read the logs of the parameter servers (ps) first, on their hosts dmesg -T | grep -i kill, of "
    "pods kubectl "
    "describe pod: a ps that runs out of memory or whose link is full is lost to all workers; then more of "
    "them",
    proves_not="which task it was, nor that it ended: a full network looks the same",
    awaits=True,
    sample="INFO:tensorflow:An error was raised. This may be due to a preemption in a connected worker or "
    "parameter "
    "server. The current session will be closed and a new session will be created. Error: OS Error",
    source=_SESSIONS,
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
SESSION_MESSAGES = (WAITS, GAVE_UP, LOST, *UNREACHED)
"""Each of these lines alone is a part of healthy runs: workers check every 30 s whether the chief is done,
and a session that lost a server begins anew."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    relay = _RELAY.search(exhibit.text)
    messages = [m for m in MESSAGES if not _waited_and_trained(exhibit.text, m)]
    heard = (
        *_stragglers(exhibit),
        *_sessions(exhibit),
        *(_as_seen_from(h, relay) for h in find_known_messages(exhibit, messages)),
    )
    heard = join_waits(heard, _SESSION_RULE)
    return Testimony(heard=heard) if heard else None


def _waited_and_trained(text: str, message: KnownMessage) -> bool:
    """Return True if the message is that of a session which waits, and the text shows that it began."""
    if message.key != _SESSION_WAITS or message.key not in text:
        return False
    trained = _TRAINED.finditer(text, text.rfind(message.key))
    return len(list(islice(trained, MIN_TRAINED_LINES))) == MIN_TRAINED_LINES


def _as_seen_from(heard: Heard, relay: re.Match[str] | None) -> Heard:
    """Return a message about a task that did not answer, with the task that asked it and passed that on."""
    if relay is None or not heard.says.endswith(" did not answer"):
        return heard
    return msgspec.structs.replace(heard, says=f"{heard.says} {relay['job']} {relay['task']}")


def _stragglers(exhibit: Exhibit) -> tuple[Heard, ...]:
    """Return the tasks that the last count of the leader left.

    A healthy start counts down too.
    """
    text = exhibit.text
    counts = list(_WAITING.finditer(text))
    if not counts or counts[-1][1] == "0":
        return ()
    last_count_begin = text.rfind("\n", 0, counts[-1].start()) + 1
    remainder = msgspec.structs.replace(exhibit, data=text[last_count_begin:].encode(), cut=1)
    stragglers = find_known_messages(remainder, (STRAGGLERS,))
    after_last_count = text[last_count_begin:]
    return tuple(
        h
        for h in stragglers
        if not any(
            f"/job:{w.job}/replica:0/task:{w.index} has connected" in after_last_count
            for w in h.about
        )
    )


def _sessions(exhibit: Exhibit) -> Iterator[Heard]:
    """Yield what sessions of TensorFlow 1 wait for, or lose again and again, when the log ends."""
    text = exhibit.text
    gave_up = find_known_messages(exhibit, (GAVE_UP,))
    yield from gave_up
    if not gave_up and _repeats(text, WAITS.key, _WENT_ON) >= MIN_CHECKS:
        yield from find_known_messages(exhibit, (WAITS,))[-1:]
    if _repeats(text, LOST.key, _TRAINED) >= MIN_LOSSES:
        yield from find_known_messages(exhibit, (LOST,))[-1:]
    if _repeats(text, UNREACHED[0].key, _WENT_ON) >= MIN_LOSSES:
        yield from find_known_messages(exhibit, UNREACHED)[-1:]


def _repeats(text: str, message: str, progress: re.Pattern[str]) -> int:
    """Return how often the message stands in the text since its last progress."""
    position, count = len(text), 0
    while (begin := text.rfind(message, 0, position)) >= 0:
        end_of_line = text.find("\n", begin)
        if end_of_line >= 0 and progress.search(text, end_of_line, position):
            break
        position, count = text.rfind("\n", 0, begin) + 1, count + 1
    return count


READER = LogReader(read=read_log)
