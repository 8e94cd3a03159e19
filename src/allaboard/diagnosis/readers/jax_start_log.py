"""Messages of JAX about its start: processes that connect, tell their devices, and meet in XLA."""

from __future__ import annotations

import re

import msgspec

from allaboard.analysis.log_ends.post_traceback_output import progress_lines
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Heard, Testimony
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD

TPU_WARNING = "Did you run your code on all TPU hosts"
"""A slow start warns too, and goes on."""
STUCK_WARNING = " seconds and may be stuck"
"""Of a rendezvous of threads that may yet come."""
UNSTUCK, TERMINATED = "unstuck", "Termination timeout "
"""What XLA writes of it later: it came, or the process ends for it."""
REGISTER_FAILED = "failed to register with the leader"
"""An attempt of several; the last one may succeed."""
_OF_A_START = re.compile(r"[Cc]oordination|Traceback|Error\b|absl::Status|UNAVAILABLE|DEADLINE|^\s")
"""Lines that a process writes which does not reach the coordinator."""
_SERVICE = "its wording from the source of XLA's coordination service (JAX 0.4 to 0.10)"
_TOPOLOGY = (
    "its wording from the source of XLA (pjrt/distributed/topology_util.cc, JAX 0.4 to 0.10)"
)
_TASK = r"(?:/job:jax_worker/replica:\d+/task:)?(?P<rank>\d+)"
_ADDRESS = r"(?P<host>[\w.-]+|\[[\w:%]+\]):(?P<port>\d+): Failed to connect to remote host: "
_RANGE_FIX = (
    "give all processes one num_processes=, and each a process_id= of its own from 0 to "
    "num_processes - 1"
)
_RESTART_FIX = (
    "read the logs for who was started twice and why it ended; then restart all of them together"
)


def _unexpected_process(key: str, pattern: str, sample: str, source: str) -> KnownMessage:
    """Return the message that a process is not among those that the coordinator expects."""
    return KnownMessage(
        key=key,
        pattern=pattern,
        rule="JOIN011",
        says="process {rank} came to a coordinator that expects no process of this number: its process_id is "
        "not below num_processes",
        fix=_RANGE_FIX,
        proves_not="which of them is wrong: process_id, num_processes or coordinator_address (another job)",
        sample=sample,
        source=source,
    )


MESSAGES = (
    KnownMessage(
        key="arrier timed out. Id: [Init]",
        pattern=r"arrier timed out\. Id: \[Init\]\S+.*?Some timed out task "
        r"names:\s*(?:/job:jax_worker/replica:\d+/task:)?(?P<rank>\d+(?:\n(?:/job:jax_worker/replica:\d+/"
        r"task:)?\d+)*)(?!\S)",
        rule="JOIN001",
        says="process {rank} never connected to the coordinator",
        fix="start process {rank} and read its log; compare coordinator_address and num_processes in all of "
        "them; if it starts slowly: jax.distributed.initialize(initialization_timeout=SECONDS)",
        proves_not="that it is at fault: it may not have been scheduled, or may start slowly",
        sample="Original error: DEADLINE_EXCEEDED: Barrier timed out. Id: "
        "[Init]Wait_for_all_tasks_to_register::0. This usually happens because a task triggered the barrier "
        "too early or too slowly. Please look at the task logs (both timed out and first task) to debug "
        "further.\n# of tasks that reached the barrier: 3/4.\nThe first task at the barrier: 2. Some timed "
        "out task names:\n1\n",
        source=_SERVICE,
    ),
    KnownMessage(
        key=REGISTER_FAILED,
        pattern=r"failed to register with the leader \(attempt #(?:[5-9]|\d\d)[^\n]*UNAVAILABLE: [^\n]*?"
        r"ipv[46](?::|%3A)" + _ADDRESS + r"(?P<why>[^\n(]{1,60})",
        rule="NET002",
        says="nobody listens at {host}:{port}, where the coordinator (process 0) is to be met",
        fix="start process 0 and read its log; compare coordinator_address in all of them; from here: "
        "nc -vz {host} {port}",
        awaits=True,
        sample="coordination_service_agent.cc:304] Coordination service agent failed to register with the "
        "leader (attempt #12, will try again after 9.2s, deadline is 2026-01-01T10:00:00, now is "
        "2026-01-01T09:58:00,total timeout is 5m). Error status: UNAVAILABLE: failed to connect to all "
        "addresses; last error: UNKNOWN: ipv4:10.0.0.1:1234: Failed to connect to remote host: connect: "
        "Connection refused (111)",
        source=_SERVICE,
    ),
    _unexpected_process(
        "Unexpected task registered",
        r"Unexpected task registered with task(?:_name)?=" + _TASK,
        "absl::Status: INVALID_ARGUMENT: Unexpected task registered with task=4\n\nRPC: "
        "/xla.coordination.CoordinationService/RegisterTask",
        _SERVICE,
    ),
    _unexpected_process(
        "Unexpected heartbeat request from task",
        r"Unexpected heartbeat request from task: "
        + _TASK
        + r"\. This usually implies a configuration error",
        "INVALID_ARGUMENT: Unexpected heartbeat request from task: 3. This usually implies a configuration "
        "error.",
        _SERVICE,
    ),
    _unexpected_process(
        "Invalid node ID",
        r"Invalid node ID (?P<rank>\d+), must be in the range \[0, \d+\)",
        "XlaRuntimeError: INVALID_ARGUMENT: Invalid node ID 4, must be in the range [0, 4)",
        "its wording from the source of XLA's distributed service (JAX 0.2)",
    ),
    KnownMessage(
        key="Duplicate node ID",
        pattern=r"INVALID_ARGUMENT: Duplicate node ID: (?P<rank>\d+)|Duplicate node ID (?P<rank2>\d+)\b",
        rule="JOIN005",
        says="two processes claim process_id {rank}{rank2}",
        fix="give every process a process_id of its own: JAX_PROCESS_ID, or process_id= in the code",
        proves_not="which of the two is wrong; one that was restarted looks the same",
        sample="XlaRuntimeError: INVALID_ARGUMENT: Duplicate node ID: 1",
        source="its wording from the source of XLA's distributed service (JAX 0.2)",
    ),
    KnownMessage(
        key="Different local topology for node",
        pattern=r"Different local topology for node (?P<rank>\d+) has been set previously",
        rule="JOIN005",
        says="process {rank} came a second time, with other devices: it was restarted while the others went "
        "on, or two processes claim to be it",
        fix=_RESTART_FIX,
        proves_not="which of the two it was",
        sample="RuntimeError: Unable to initialize backend 'cuda': INTERNAL: Different local topology for "
        "node 0 has been set previously, possibly before a restart.",
        source=_TOPOLOGY,
    ),
    KnownMessage(
        key="GetKeyValue() timed out with key: ",
        pattern=r"GetKeyValue\(\) timed out with key: (?:\w+:)?local_topology/\w+/(?P<rank>\d+)"
        r" and duration: (?P<time>[\w.]+)",
        rule="LOG001",
        says="process {rank} connected, but did not tell its devices to the others within {time}",
        fix="look at process {rank}: its log, and on its host: nvidia-smi; py-spy dump --pid PID while it "
        "hangs",
        proves_not="that it failed: one whose GPUs start slowly, or that asked for its devices later, looks "
        "the same",
        sample="RuntimeError: Unable to initialize backend 'cuda': INTERNAL: Getting local topologies "
        "failed: Error 1: GetKeyValue() timed out with key: cuda:local_topology/cuda/1 and duration: 2m",
        source=_TOPOLOGY,
    ),
    KnownMessage(
        key="GetKeyValue() timed out with key: ",
        pattern=r"GetKeyValue\(\) timed out with key: (?:\w+:)?global_topology/\w+ and duration: "
        r"(?P<time>[\w.]+)",
        rule="LOG001",
        says="process 0, which gathers the devices of all processes, did not publish them within {time}",
        fix="read the log of process 0: it names the process whose devices it waits for",
        proves_not="that process 0 is at fault: it waits for the devices of every process",
        awaits=True,
        sample="RuntimeError: Unable to initialize backend 'cuda': DEADLINE_EXCEEDED: GetKeyValue() timed "
        "out with key: cuda:global_topology/cuda and duration: 5m",
        source=_TOPOLOGY,
    ),
    KnownMessage(
        key="GetKeyValue() timed out with key: ",
        pattern=r"GetKeyValue\(\) timed out with key: cpu:gloo/[\d,]{1,400}/(?P<member>\d+)",
        rule="LOG001",
        says="a process waited for member {member} of a group of devices to open its connections of gloo, "
        "and it did not come in time",
        fix="all processes of the group must come to its first collective within 30 s of each "
        "other: look for "
        "what only one does before (loading, compiling): py-spy dump --pid PID on each host while it waits",
        proves_not="which process member {member} is: the key counts within the group",
        awaits=True,
        sample="Gloo context initialization failed: DEADLINE_EXCEEDED: GetKeyValue() timed out with key: "
        "cpu:gloo/0,16,32/1 and duration: 30s",
        source="its wording from the source of XLA (gloo_kv_store.cc, JAX 0.5 to 0.12)",
    ),
    KnownMessage(
        key=TPU_WARNING,
        pattern=r"TPU backend initialization is taking more than (?P<seconds>[\d.]+)"
        r" seconds\. Did you run your code on all TPU hosts",
        rule="JOIN001",
        says="JAX waits for the other hosts of the TPU slice: it was not started on all of them",
        fix="start the same program on every host of the slice: gcloud compute tpus tpu-vm ssh NAME "
        "--worker=all "
        "--command='python SCRIPT'; for this host alone: TPU_PROCESS_BOUNDS=1,1,1 TPU_VISIBLE_CHIPS=0",
        proves_not="which host is missing; another program that holds the TPU looks the same: "
        "sudo lsof -w /dev/accel* /dev/vfio/*",
        sample="/usr/lib/python3/dist-packages/jax/_src/xla_bridge.py:184: UserWarning: TPU backend "
        "initialization is taking more than 60.0 seconds. Did you run your code on all TPU hosts? See "
        "https://jax.readthedocs.io/en/latest/multi_process.html for more information.\n  warnings.warn(",
        source="its wording from the source of JAX 0.4.14 to 0.10 (xla_bridge.py)",
    ),
    KnownMessage(
        key=STUCK_WARNING,
        pattern=r"This thread has been waiting for `(?P<what>[^`;\n]{1,60}?)(?: for rank \d+)?[`;][^\n]*?"
        r"(?<![\d.])(?P<seconds>\d+) seconds and may be stuck\. Expected (?P<many>\d+) threads",
        rule="LOG001",
        says="devices of this process wait for others in XLA's rendezvous ({what})",
        fix="run once with NCCL_DEBUG=INFO: its lines tell which host does not answer; NCCL_SOCKET_IFNAME "
        "chooses the interface; while it hangs, on each host: py-spy dump --pid PID",
        proves_not="who is missing, nor that it hangs for ever: a slow start of NCCL warns too",
        awaits=True,
        sample="2024-07-29 17:14:59.920189: E external/xla/xla/service/rendezvous.cc:38] This thread has "
        "been waiting for `initialize clique for rank 6; clique=devices=[0,1,2,3]; stream=0; run_id=7` for "
        "10 seconds and may be stuck. Expected 8 threads to join the rendezvous, but not all of them arrived "
        "on time.",
        source="its wording from the source of XLA's rendezvous.cc (JAX 0.4.14 to 0.10)",
    ),
    KnownMessage(
        key=f"{TERMINATED}of ",
        pattern=r"rendezvous\.cc:\d+\] Termination timeout of (?P<seconds>\d+) seconds exceeded\. Exiting "
        r"to ensure",
        rule="LOG001",
        says="not all devices came to a collective of XLA within {seconds} s",
        fix="run once with NCCL_DEBUG=INFO; on CPUs: fewer devices a process, more cores; on GPUs: "
        "dmesg -T | grep -i xid",
        proves_not="which device, nor that it hangs: on a host with too much to do it may only be late",
        sample="2023-01-01 10:00:30.1: E external/xla/xla/service/rendezvous.cc:41] Termination timeout of "
        "30 seconds exceeded. Exiting to ensure a consistent program state.",
        source="its wording from the source of XLA's rendezvous.cc (JAX 0.4.1 to 0.4.13)",
    ),
    KnownMessage(
        key=f"{TERMINATED}for",
        pattern=r"Termination timeout for `[^\n]{0,400}?of (?P<seconds>\d+) seconds exceeded\. Exiting to "
        r"ensure a consistent program state\. Expected (?P<many>\d+) threads to join the rendezvous",
        rule="LOG001",
        says="not all {many} devices came to a collective of XLA within {seconds} s",
        fix="on CPUs: fewer devices a process (--xla_force_host_platform_device_count), more cores, or "
        "XLA_FLAGS=--xla_cpu_collective_call_terminate_timeout_seconds=600; on GPUs: dmesg -T | grep -i xid",
        proves_not="which device, nor that it hangs: on a host with too much to do it may only be late",
        sample="F1124 10:13:53.123456 4711 rendezvous.cc:112] [id=4] Termination timeout for `all-reduce` of "
        "40 seconds exceeded. Exiting to ensure a consistent program state. Expected 4 threads to join the "
        "rendezvous, but only 3 of them arrived on time.",
        source="its wording from the source of JAX 0.10 (XLA's rendezvous.cc)",
    ),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    heard = find_known_messages(exhibit, MESSAGES)
    passed = {
        w
        for w in (TPU_WARNING, STUCK_WARNING, REGISTER_FAILED)
        if w in text and _has_passed(text, w)
    }
    heard = tuple(h for h in heard if not any(w in h.speakers[0].line for w in passed))
    heard = tuple(map(_in_one_line, heard))
    return Testimony(heard=heard) if heard else None


def _has_passed(text: str, warning: str) -> bool:
    """Return True if the program wrote more after its last warning, other than how it was interrupted."""
    later = text[text.rfind(warning) :].partition(TRACEBACK_HEAD)[0]
    lines = [line for line in later.split("\n")[1:] if warning not in line]
    if warning == STUCK_WARNING and any(w in later for w in (UNSTUCK, TERMINATED)):
        return True
    if warning == REGISTER_FAILED:
        return "agent has successfully connected" in later or any(
            line.strip() and not _OF_A_START.search(line) for line in lines
        )
    return bool(progress_lines(lines))


def _in_one_line(heard: Heard) -> Heard:
    """Return the message with its processes in one line: several are listed one a line."""
    if "\n" not in heard.says:
        return heard
    names = re.compile(r"\n(?:/job:jax_worker/replica:\d+/task:)?")
    says, fix = (names.sub(", ", t) for t in (heard.says, heard.fix))
    return msgspec.structs.replace(heard, says=says, fix=fix)


READER = LogReader(read=read_log)
