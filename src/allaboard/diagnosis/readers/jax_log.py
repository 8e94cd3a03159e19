"""Messages of JAX about its coordination service, which ends a process by SIGABRT rather than raise."""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Testimony

_RECORDED = "recorded, JAX 0.10.2"
_SERVICE = "its wording from the source of XLA's coordination service (JAX 0.4 to 0.10)"
_OLD_CLIENT = "its wording from the source of XLA's distributed client (JAX 0.2.25 to 0.4.30)"
_NCCL_OF_XLA = "from the source of XLA (nccl_utils.cc, nccl_api.cc), JAX 0.4 to 0.10"
_ADDRESS = r"(?P<host>[\w.-]+|\[[\w:%]+\]):(?P<port>\d+): Failed to connect to remote host: "
MESSAGES = (
    KnownMessage(
        key="Failed to allocate device memory of ",
        pattern=r"Failed to allocate device memory of (?P<much>[\d.]+[KMGT]iB)"
        r" \(\d+ bytes\): RESOURCE_EXHAUSTED: [^\n]{0,40}CUDA_ERROR_OUT_OF_MEMORY",
        rule="LOG004",
        says="JAX found the memory of a GPU taken when it wanted its share of it: another process is on "
        "the same GPU, mostly another process of the job",
        fix="nvidia-smi; echo $CUDA_VISIBLE_DEVICES   # a GPU of its own for each process: "
        "CUDA_VISIBLE_DEVICES=$LOCAL_RANK, or initialize(local_device_ids=[...]). To share one on purpose: "
        "XLA_PYTHON_CLIENT_PREALLOCATE=false, or XLA_PYTHON_CLIENT_MEM_FRACTION=.4 in both",
        explains=("RES001",),
        only_explains=True,
        sample="E1127 16:32:18.315333 5226 cuda_executor.cc:1365] [0] Failed to allocate device memory of "
        "104.85GiB (112583507968 bytes): RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        source="recorded with JAX 0.11.2, two processes on one H200",
    ),
    KnownMessage(
        key="DEADLINE_EXCEEDED",
        pattern=r"DEADLINE_EXCEEDED: [^\n]*\n\s*RPC: /[\w.]+\.CoordinationService/RegisterTask",
        rule="JOIN004",
        says="a process gave up registering with the coordinator (process 0)",
        fix="see which of the num_processes has no log; compare coordinator_address in all of them",
        awaits=True,
        proves_not="who is missing: the coordinator itself, any other process, and a wrong address "
        "look the same, and the one that says it is not at fault",
        sample="F1121 12:32:58.523336 31002 client.h:80] Terminating process because the JAX "
        "distributed service detected fatal errors. absl::Status: DEADLINE_EXCEEDED: Deadline "
        "Exceeded\n\nRPC: /xla.coordination.CoordinationService/RegisterTask",
        source=_RECORDED,
    ),
    KnownMessage(
        key="executable is built for device ",
        pattern=r"executable is built for device (?P<one>\S{1,40}) of type \"(?P<model>[^\"\n]{1,80})"
        r"\"; cannot run it on device (?P<other>\S{1,40}) of type \"(?P<other_model>[^\"\n]{1,80})\"",
        rule="LOG011",
        says="XLA compiled for {one} ({model}) and was to run on {other}, which is another model "
        "({other_model})",
        fix="nvidia-smi -L; export CUDA_VISIBLE_DEVICES=N,...   # GPUs of one model only: pmap and psum run "
        "one program on all of them",
        certainty=Certainty.CERTAIN,
        explains=("LOG001", "EXIT001", "LOG012"),
        sample='Invalid argument: executable is built for device CUDA:0 of type "TITAN V"; cannot run '
        'it on device CUDA:1 of type "Quadro K2200"',
        source="its wording from the source of XLA (local_service_utils, JAX 0.1 to 0.4)",
    ),
    KnownMessage(
        key="ALREADY_EXISTS",
        pattern=r"ALREADY_EXISTS: Aborted connect attempt as there is a request from a newer "
        r"incarnation",
        rule="JOIN005",
        says="two processes claim the same process_id: this one was dropped for a newer one",
        fix="give every process a process_id of its own: JAX_PROCESS_ID, or process_id= in the code",
        proves_not="which of the two is wrong; one that was restarted looks the same",
        sample="client.h:80] Terminating process because the JAX distributed service detected fatal "
        "errors. absl::Status: ALREADY_EXISTS: Aborted connect attempt as there is a request from a "
        "newer incarnation.\n\nRPC: /xla.coordination.CoordinationService/RegisterTask",
        source=_RECORDED,
    ),
    KnownMessage(
        key="barrier",
        # Whom it lists is told by the coordination service's own witness.
        pattern=r"[Bb]arrier timed out\. Id: (?!\[Init\]Wait_for_all_tasks_to_register)(?!(?!Shutdown)"
        r"\S.{0,600}?timed out task names:\s*(?:/job:|\d))(?P<id>\S[^\n]{0,200}?)(?=\. This usually"
        r"|\.?(?:\s|$))[^\n]{0,300}",
        rule="LOG001",
        says="a process waited at the barrier {id} until its timeout",
        fix="look at the processes that are still in their own code: py-spy dump --pid PID",
        proves_not="that the tasks that it lists are at fault: those that left well are listed where one "
        "of them raised and stays in its own shutdown",
        awaits=True,
        sample="DEADLINE_EXCEEDED: Barrier timed out. Id: Shutdown::0::1. This usually happens because "
        "a task triggered the barrier too early or too slowly.",
        source="its wording from the source of the coordination service",
    ),
    KnownMessage(
        key="failed to connect to all addresses",
        pattern=r"(?:WatchTasks|PollForError|Heartbeat|GetKeyValue|Barrier)\w* [^\n]{0,60}UNAVAILABLE: "
        r"failed to "
        r"connect to all addresses; last error: [^\n]{0,40}?\s?ipv[46](?::|%3A)"
        + _ADDRESS
        + r"(?P<why>[^\n(]{1,60})",
        rule="EXIT005",
        says="the leader (process 0, where the coordination service is) answered no more at {host}:{port}",
        fix="read the log of process 0 first, and the kernel's on its host: dmesg -T | grep -i kill; from "
        "here: nc -vz {host} {port}",
        proves_not="that it began there: it may itself have ended because of another, or the link broke",
        awaits=True,
        sample="coordination_service_agent.cc:351] WatchTasksAsync failed for task 3: UNAVAILABLE: failed to "
        "connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.1:1234: Failed to connect to remote "
        "host: connect: Connection refused (111)",
        source=_SERVICE,
    ),
    KnownMessage(
        key="failed to connect to all addresses",
        pattern=r"(?:WatchTasks|PollForError)\w* failed[^\n]{0,60}UNAVAILABLE: failed to connect to all "
        r"addresses(?!; last error: [^\n]{0,40}?\s?ipv[46](?::|%3A))",
        rule="EXIT005",
        says="the leader (process 0, where the coordination service is) answered no more",
        fix="read the log of process 0 first, and the kernel's on its host: dmesg -T | grep -i kill; from "
        "here: nc -vz HOST PORT, the coordinator's address. If it never listened there, its log names "
        "the address that it bound: JAX_COORDINATOR_BIND_ADDRESS=0.0.0.0 on process 0",
        proves_not="that it ever answered, nor that it began there: it may have ended because of another",
        awaits=True,
        sample="WatchTasksAsync failed for task 3: UNAVAILABLE: failed to connect to all addresses",
        source=_SERVICE,
    ),
    KnownMessage(
        key="missing heartbeat response from the coordinator",
        pattern=r"Terminating process because of missing heartbeat response from the coordinator",
        rule="EXIT005",
        says="the leader (process 0, where the coordination service is) answered no more",
        fix="read the log of process 0 first, and the kernel's on its host: dmesg -T | grep -i kill",
        proves_not="that it began there: it may itself have ended because of another, or the link broke",
        awaits=True,
        sample="2023-03-01 10:00:00.123: F external/xla/xla/pjrt/distributed/client.h:78] Terminating "
        "process because of missing heartbeat response from the coordinator. This most likely indicates "
        "that the coordinator task died; see the coordinator's task logs for more details.",
        source=_OLD_CLIENT,
    ),
    KnownMessage(
        key="the coordinator detected missing heartbeats",
        pattern=r"Terminating process because the coordinator detected missing heartbeats"
        r"(?![^\n]{0,400}Task /job\S+ heartbeat timeout)",
        rule="LOG002",
        says="a process stopped sending heartbeats to the coordinator, which ended the others",
        fix="read the logs of all processes: the one that does not write this is the one to look at, and its "
        "kernel's log: dmesg -T | grep -i kill",
        proves_not="that it crashed: a stopped process sends none either, nor does one behind a link that "
        "broke",
        awaits=True,
        sample="2023-03-01 10:00:00.123: F external/xla/xla/pjrt/distributed/client.h:70] Terminating "
        "process because the coordinator detected missing heartbeats. This most likely indicates that "
        "another task died; see the other task logs for more details. Status: UNAVAILABLE: ",
        source=_OLD_CLIENT,
    ),
    KnownMessage(
        key="-th instance. The service or task probably restarted",
        pattern=r"Barrier \((?P<id>[^)\n]{1,80})\) is invoked by the task, but the service thinks it is "
        r"the -?\d+-th instance\. The service or task probably restarted",
        rule="JOIN005",
        says="at the barrier {id} a process counts otherwise than the coordinator: one of them was restarted "
        "while the others went on",
        fix="read the logs for who was started twice and why it ended; then restart all of them together",
        proves_not="which of them was restarted",
        sample="XlaRuntimeError: INTERNAL: Barrier (ckpt::1) is invoked by the task, but the service thinks "
        "it is the 0-th instance. The service or task probably restarted, check the earlier logs to debug "
        "further.",
        source=_SERVICE,
    ),
    KnownMessage(
        key="due to async NCCL error: ",
        pattern=r"Aborting communicator: \S+ due to async NCCL error: remote process exited or there was "
        r"a network error",
        rule="EXIT005",
        says="another process went away in the middle of a collective, or the network to it broke",
        fix="read the logs of the other processes: the one that does not write this, or wrote it last, is "
        "the one to look at; then the kernel's: dmesg -T | grep -iE 'kill|xid|link'",
        proves_not="which process: NCCL does not name it",
        awaits=True,
        sample="2024-01-11 05:43:11.7: E external/xla/xla/service/gpu/nccl_utils.cc:211] Aborting "
        "communicator: "
        "0x7f3e427e55b0 due to async NCCL error: remote process exited or there was a network error",
        source=_NCCL_OF_XLA,
    ),
    KnownMessage(
        key="due to async NCCL error: ",
        pattern=r"Aborting communicator: \S+ due to async NCCL error: (?!remote process exited)"
        r"(?P<what>[^\n]{1,120})",
        rule="LOG010",
        says="NCCL failed in the middle of a collective: {what}",
        fix="run once with NCCL_DEBUG=INFO: its lines before this one tell on which host, and with which "
        "device",
        sample="E nccl_utils.cc:211] Aborting communicator: 0x7f3e due to async NCCL error: unhandled "
        "system error",
        source=_NCCL_OF_XLA,
    ),
    KnownMessage(
        key="Last NCCL warning(error) log entry",
        pattern=r"NCCL operation (?P<call>\w+)\([^\n]{0,120}? failed: (?P<kind>[a-z ]{1,40})"
        r" \(run with[^\n]{0,60}?\. Last NCCL warning\(error\) log entry \(may be unrelated\) "
        r"'(?P<what>[^\n']{1,160})",
        rule="LOG010",
        says="NCCL failed in {call} ({kind}): {what}",
        fix="run once with NCCL_DEBUG=INFO: its lines before this one tell on which host, and with which "
        "device",
        proves_not="that the last entry is the reason: XLA quotes what NCCL logged last",
        sample="INTERNAL: external/xla/xla/service/gpu/nccl_utils.cc:305: NCCL operation "
        "ncclCommInitRank(&comm, nranks, id, rank) failed: unhandled system error (run with "
        "NCCL_DEBUG=INFO for details). Last NCCL warning(error) log entry (may be unrelated) "
        "'socketTryAccept: Accept failed: Bad file descriptor'.",
        source=_NCCL_OF_XLA,
    ),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = find_known_messages(exhibit, MESSAGES)
    return Testimony(heard=heard) if heard else None


READER = LogReader(read=read_log)
