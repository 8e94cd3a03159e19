"""Known messages of TensorFlow's runtime."""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage
from allaboard.diagnosis.wordings.tensorflow_session_messages import SESSION_WAITS

_RECORDED = "recorded, TensorFlow 2.21.0"
TASK = r"/job:(?P<job>(?!localhost\b)\w+)/(?:replica:\d+/)?task:(?P<task>\d+)"
"""A task of another process: a process calls itself localhost."""


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
    pattern=r"Example stragglers:\s*" + TASK,
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
        key=SESSION_WAITS,
        pattern=r"CreateSession still waiting for response from worker: "
        r"/job:(?P<job>worker|chief|master)/(?:replica:\d+/)?task:(?P<task>\d+)",
        rule="PS003",
        says="the session waited for {job} {task}, another task that trains: no device filters are set",
        fix="tf.ConfigProto(device_filters=['/job:ps', '/job:worker/task:N'])   # N: this worker's index; "
        "the session then waits for the servers alone. Or read the log of {job} {task}, and start it again",
        proves_not="that {job} {task} is not running: a wrong address or a firewall looks the same",
        sample="2017-09-01 09:34:05.787286: I tensorflow/core/distributed_runtime/master.cc:193] "
        "CreateSession still waiting for response from worker: /job:worker/replica:0/task:12",
        source="its wording from the source of TensorFlow 1.0 to 2.21 (master.cc)",
    ),
    KnownMessage(
        key=SESSION_WAITS,
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
        "already in use\nE0727 11:38:35.7   22857 server_chttp2.c:119]        No address added out of total "
        "1 resolved",
        source="its wording from the source of gRPC 0.13 to 1.0, in TensorFlow 0.8 to 1.0",
    ),
    KnownMessage(
        key="current incarnation doesn't match",
        pattern=r"Device " + TASK + r"/\S+ current incarnation doesn't match with one in the group",
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
        r'(?:\("|(?!\(").{0,900}?send_device=\\?")' + TASK,
        rule="JOIN005",
        says="{job} {task} was restarted while the others went on, or two processes claim to be it",
        fix="read the log of {job} {task}'s first process: why it ended; see that no other runs: "
        "ps -eo pid,lstart,args | grep python; then restart all of them together",
        proves_not="which of the two it was: the receiver knows that the process is another, not why",
        sample="AbortedError: RecvTensor expects a different device incarnation: 11 vs. 12. Your worker "
        'job ("/job:worker/replica:0/task:1") was probably restarted. Check your worker job for the '
        "reason why it was restarted.",
        source="its wording from the source of TensorFlow: the task is in the message since 1.13, and in the "
        "operation's send_device before",
    ),
    _restarted_in_session(
        "From /job:",
        r"From " + TASK + r":\s+[^\n]*(?:handle is not found|just restarted)",
        "AbortedError: From /job:ps/replica:0/task:0:\nSession handle is not found: f8368e3b7d417955. "
        'Possibly this worker ("/job:localhost/replica:0/task:0") just restarted.',
    ),
    _restarted_in_session(
        "andle is not found: ",
        r"(?:Session|Graph) handle is not found: [^\n]{1,60}?\(\"?(?!/job:localhost)"
        + TASK
        + r"\"?\) just restarted",
        "AbortedError: Session handle is not found: f8368e3b7d417955. Possibly this worker "
        '("/job:ps/replica:0/task:0") just restarted.',
    ),
    KnownMessage(
        key="joining a group with size",
        pattern=TASK
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
        + TASK
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
        + TASK
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
        "and type {got} of data type {other})",
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
    KnownMessage(
        key="Inconsistent output shapes",
        pattern=r"Inconsistent output shapes, got (?P<got>\[[\d,]*\]), but expected is (?P<want>\[[\d,]*\])"
        r"(?=[^\n]{0,80}(?:\n|\\n)?[^\n]{0,40}(?:CollectiveGather|allgather))",
        rule="LOG003",
        says="at a gather the members' parts were other in number or size than agreed ({got}, and {want} was "
        "expected)",
        fix="give every worker parts of one size at all steps: batch(N, drop_remainder=True), inputs of one "
        "length (padded), and dense gradients (an embedding's are gathered, as rows that differ in number: "
        "tf.convert_to_tensor(gradient))",
        proves_not="which member's part differs: each compares the sum with its own",
        sample="OP_REQUIRES failed at collective_ops.cc:125 : Internal: Inconsistent output shapes, got [6], "
        "but expected is [3].\n\t [[{{node SGD/allreduce_2/CollectiveGather_2}}]]",
        source="its wording as reported for TensorFlow 1.14 to 2, not recorded",
    ),
)
