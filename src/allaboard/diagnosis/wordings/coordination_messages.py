"""Known messages of TensorFlow's and JAX's coordination service."""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage

_RECORDED = "recorded, JAX 0.10.2"
_SOURCE = "its wording from the source of the coordination service (TensorFlow 2.21, JAX 0.10)"
_OLD_SOURCE = (
    "its wording from the source of the coordination service (TensorFlow 2.9 to 2.12, JAX 0.4)"
)
_TASK = r"/job:(?P<job>(?!jax_worker)\w+)/(?:replica:\d+/)?task:(?P<task>\d+)"
_JAX = r"/job:jax_worker/replica:\d+/task:(?P<rank>\d+)"
_NUMBERS = r"(?P<rank>\d+(?:\n\d+)*)(?!\S)"
_BARRIER_ID = r"[Bb]arrier timed out\. (?:Barrier_id|Id): "
_NAMES = r"\S*\s*Timed out task names:\s*(?P<names>/job:\w+/\S+(?:\s+/job:\w+/\S+)*)"
_TASK_LINES = r"(?P<names>/job:(?!jax_worker)\w+/\S+(?:\n/job:\w+/\S+)*)"
_JAX_LINES = r"(?P<names>/job:jax_worker/\S+(?:\n/job:jax_worker/\S+)*)"
"""Lists of tasks, one a line."""
_TWICE_FIX = (
    "read the log of {}'s first process: if it ended, why; then restart all of them together. If both run: "
    "give each process a number of its own (JAX: process_id, JAX_PROCESS_ID; TensorFlow: task.index in "
    "TF_CONFIG), counted over all hosts and slices"
)
_UNHEALTHY = "tasks are unhealthy (stopped sending heartbeats)"
_LOOK = "then its log and the kernel's: dmesg -T | grep -i kill"
_STOPPED = (
    "that it crashed, though the message says so: a stopped process sends none either, nor does one "
    "behind a link that broke"
)
_LATE = (
    r"[Bb]arrier timed out\. Id: (?!Shutdown|\[Init\])(?P<id>\S[^\n]{0,200}?)(?:\. This usually|\.?(?:\n|$))"
    r".*?Some timed out task names:\s*"
)
_SLOW = "that it is at fault: it may be slow, or itself wait for somebody else"


def _missed_heartbeats(task_pattern: str, task_name: str, sample: str, source: str) -> KnownMessage:
    return KnownMessage(
        key="tasks are unhealthy",
        pattern=r"tasks are unhealthy \(stopped sending heartbeats\):\s*" + task_pattern,
        rule="LOG002",
        says=f"{task_name} stopped sending heartbeats",
        fix=f"look at {task_name}: ps -o stat= -p PID says T where it is stopped; {_LOOK}",
        proves_not=_STOPPED,
        sample=sample,
        source=source,
    )


def _heartbeat_timeout(task_pattern: str, task_name: str, task: str) -> KnownMessage:
    return KnownMessage(
        key="heartbeat timeout",
        pattern=r"\bTask " + task_pattern + r" heartbeat timeout\b",
        rule="LOG002",
        says=f"{task_name} stopped sending heartbeats",
        fix=f"look at {task_name}: ps -o stat= -p PID says T where it is stopped; {_LOOK}",
        proves_not=_STOPPED,
        sample=f"StartAbort UNAVAILABLE: Task {task} heartbeat timeout. This indicates that the remote task "
        "has failed, got preempted, or crashed unexpectedly.",
        source=_SOURCE,
    )


def _second_incarnation(task_pattern: str, task_name: str, task: str) -> KnownMessage:
    return KnownMessage(
        key="with a different incarnation",
        pattern=task_pattern + r" unexpectedly tried to connect with a different incarnation",
        rule="JOIN005",
        says=f"{task_name} came a second time: it was restarted while the others went on, or two processes "
        "claim to be it",
        fix=_TWICE_FIX.format(task_name),
        proves_not="which of the two it was: the service sees a second process alone",
        sample=f"{task} has been set to ERROR in coordination service: ABORTED: {task} unexpectedly tried to "
        "connect with a different incarnation. It has likely restarted.",
        source=_SOURCE,
    )


def _other_incarnation(task_pattern: str, task_name: str, task: str) -> KnownMessage:
    return KnownMessage(
        key="Incarnation ID mismatch: expecting",
        pattern=task_pattern + r" Heartbeat: Incarnation ID mismatch: expecting \d+ but got \d+",
        rule="JOIN005",
        says=f"{task_name} came a second time: it was restarted while the others went on, or two processes "
        "claim to be it",
        fix=_TWICE_FIX.format(task_name),
        proves_not="which of the two it was: the service sees a second process alone",
        sample=f"ABORTED: {task} Heartbeat: Incarnation ID mismatch: expecting 11 but got 12. The remote "
        "task has restarted.",
        source=_OLD_SOURCE + ", and JAX 0.10",
    )


def _missed_barrier(task_pattern: str, task_name: str, task: str, source: str) -> KnownMessage:
    return KnownMessage(
        key="arrier timed out. Id",
        pattern=_LATE + task_pattern,
        rule="LOG001",
        says=f"{task_name} did not come to the barrier {{id}} before its timeout",
        fix=f"look at {task_name}: its log, or py-spy dump --pid PID while it hangs",
        proves_not=_SLOW,
        sample="DEADLINE_EXCEEDED: Barrier timed out. Id: ckpt::0. This usually happens because a task "
        "triggered the barrier too early or too slowly. Please look at the task logs (both timed out and "
        "first task) to debug further.\n# of tasks that reached the barrier: 2/3.\nThe first task at the "
        f"barrier: 0. Some timed out task names:\n{task}\n\n\nRPC: /xla.coordination.CoordinationService",
        source=source,
    )


MESSAGES = (
    _missed_heartbeats(
        _TASK_LINES,
        "{names}",
        "BaseCollectiveExecutor::StartAbort UNAVAILABLE: Error reported from /job:worker/task:1: The "
        f"following {_UNHEALTHY}:\n/job:worker/replica:0/task:1",
        "recorded, TensorFlow 2.21.0",
    ),
    _missed_heartbeats(
        _JAX_LINES,
        "{names}",
        f"absl::Status: UNAVAILABLE: The following {_UNHEALTHY}:\n/job:jax_worker/replica:0/task:3\n",
        _SOURCE,
    ),
    _missed_heartbeats(
        _NUMBERS,
        "process {rank}",
        f"absl::Status: UNAVAILABLE: The following {_UNHEALTHY}:\n2\nThe tasks have crashed.",
        _RECORDED,
    ),
    _heartbeat_timeout(_TASK, "{job} {task}", "/job:worker/replica:0/task:2"),
    _heartbeat_timeout(_JAX, "process {rank}", "/job:jax_worker/replica:0/task:5"),
    _heartbeat_timeout(r"(?P<rank>\d+)", "process {rank}", "5"),
    _second_incarnation(_TASK, "{job} {task}", "/job:worker/replica:0/task:1"),
    _second_incarnation(_JAX, "process {rank}", "/job:jax_worker/replica:0/task:1"),
    _second_incarnation(r"(?<![\w:/])(?P<rank>\d+)", "process {rank}", "1"),
    _other_incarnation(_TASK, "{job} {task}", "/job:worker/replica:0/task:1"),
    _other_incarnation(_JAX, "process {rank}", "/job:jax_worker/replica:0/task:1"),
    _other_incarnation(r"(?<![\w:/])(?P<rank>\d+)", "process {rank}", "1"),
    KnownMessage(
        key="must be registered before sending heartbeat messages",
        pattern=r"must be registered before sending heartbeat messages\. The service might have restarted",
        rule="JOIN005",
        says="the leader (process 0, where the coordination service is) was restarted while the others "
        "went on",
        fix="read the log of process 0's first process: why it ended; then restart all of them together",
        proves_not="why it was restarted: a crash, a preemption and a second start by hand look the same",
        sample="INVALID_ARGUMENT: Task 3 must be registered before sending heartbeat messages. The service "
        "might have restarted, please restart / reset and register again.",
        source=_SOURCE,
    ),
    KnownMessage(
        key="Stopping coordination service as cluster registration failed",
        # The barrier's own message names who did not come.
        pattern=r"Stopping coordination service as cluster registration failed(?!.{0,1100}task names:)",
        rule="JOIN001",
        says="not all processes connected to the coordinator before its timeout",
        fix="see which of the num_processes has no log; compare coordinator_address and num_processes in all "
        "of them; if they start slowly: jax.distributed.initialize(initialization_timeout=SECONDS)",
        proves_not="which one",
        sample="Stopping coordination service as cluster registration failed. This may be due to 1) some "
        "tasks crashed earlier before connecting, 2) some tasks were never scheduled, or 3) scheduling "
        "delays.",
        source=_SOURCE,
    ),
    KnownMessage(
        key="before the workers disconnect gracefully",
        pattern=r"implies an earlier error that caused coordination service to shut down before the workers "
        r"disconnect gracefully",
        rule="EXIT005",
        says="the leader (process 0, where the coordination service is) ended before the others had finished",
        fix="read the log of process 0 first, and the kernel's on its host: dmesg -T | grep -i kill",
        proves_not="that it began there: it may itself have ended because of another",
        awaits=True,
        sample="UNAVAILABLE: ShutdownTask failed. This usually implies an earlier error that caused "
        "coordination service to shut down before the workers disconnect gracefully.",
        source=_SOURCE,
    ),
    KnownMessage(
        key="Leader incarnation ID mismatch",
        pattern=r"Leader incarnation ID mismatch: the coordination ",
        rule="JOIN005",
        says="the leader (process 0, where the coordination service is) was restarted while the others "
        "went on",
        fix="read the log of process 0's first process: why it ended; then restart all of them together",
        proves_not="why it was restarted: a crash, a preemption and a second start by hand look the same",
        sample="ABORTED: Leader incarnation ID mismatch: the coordination  leader (usually slice 0 task 0) "
        "has restarted. Check for earlier errors or any scheduler events",
        source="its wording from JAX 0.10's library",
    ),
    _missed_barrier(_TASK_LINES, "{names}", "/job:worker/replica:0/task:2", _SOURCE),
    _missed_barrier(_JAX_LINES, "{names}", "/job:jax_worker/replica:0/task:2", _SOURCE),
    _missed_barrier(_NUMBERS, "process {rank}", "2", _RECORDED),
    KnownMessage(
        key="arrier timed out.",
        pattern=_BARRIER_ID + r"PjRT_Client_Connect" + _NAMES,
        rule="JOIN001",
        says="{names} never connected to the coordinator",
        fix="start {names} and read the log of each; compare coordinator_address and num_processes in all of "
        "them",
        proves_not=_SLOW,
        sample="XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect. "
        "Timed out task names:\n/job:jax_worker/replica:0/task:3\n/job:jax_worker/replica:0/task:2\n",
        source=_OLD_SOURCE,
    ),
    KnownMessage(
        key="arrier timed out.",
        pattern=_BARRIER_ID + r"(?!PjRT_Client_Connect|Shutdown)(?P<id>[^\s.]+)" + _NAMES,
        rule="LOG001",
        says="{names} did not come to the barrier {id} before its timeout",
        fix="look at {names}: the log of each, or py-spy dump --pid PID while it hangs",
        proves_not=_SLOW,
        sample="XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: ckpt_7. Timed out task "
        "names:\n/job:jax_worker/replica:0/task:3\n",
        source=_OLD_SOURCE,
    ),
    *(
        KnownMessage(
            key=key,
            pattern=pattern,
            rule="LOG003",
            says=says,
            fix="compare wait_at_barrier(barrier_id, timeout_in_ms, process_ids) in all processes: the same "
            "barrier with the same process_ids, given by all of these or by none",
            proves_not="which of them gives the wrong list: the first one to come sets it",
            sample=sample,
            source="its wording from the source of XLA's coordination service (JAX 0.4.30 to 0.10)",
        )
        for key, pattern, says, sample in (
            (
                "Conflicting tasks specified by different processes",
                r"Conflicting tasks specified by different processes for the same barrier: "
                r"(?:[Bb]arrier )?\(?(?P<id>[^\s)]{1,200}?)[).]",
                "processes gave other lists of participants for the barrier {id}",
                "INVALID_ARGUMENT: Conflicting tasks specified by different processes for the same barrier: "
                "Barrier (ckpt::0). Check that the callers are invoking the barrier with the same arguments.",
            ),
            (
                "No tasks were specified by the client",
                r"[Bb]arrier \((?P<id>[^)\n]{1,200})\): No tasks were specified by the client",
                "one process meant all of them at the barrier {id}, and another one a part of them",
                "INVALID_ARGUMENT: Barrier (ckpt::0): No tasks were specified by the client, which implies "
                "that the entire cluster is participating in the barrier. However, the service disagrees.",
            ),
            (
                "A non-participating task (",
                r"A non-participating task \((?:/job:\w+/(?:replica:\d+/)?task:)?(?P<rank>\d+)\) called the "
                r"barrier: (?:[Bb]arrier )?\(?(?P<id>[^\s)]{1,200})",
                "process {rank} came to the barrier {id}, whose list of participants does not have it",
                "INVALID_ARGUMENT: A non-participating task (/job:jax_worker/replica:0/task:3) called the "
                "barrier: Barrier (ckpt::0)",
            ),
        )
    ),
    KnownMessage(
        key="Either the leader task",
        pattern=r"Failed to send RPC to coordination service\. Either the leader task",
        rule="EXIT005",
        says="the leader (process 0, where the coordination service is) went away",
        fix="read the log of process 0 first, and the kernel's on its host: dmesg -T | grep -i kill",
        proves_not="that it began there: it may itself have ended because of another, or the link broke",
        awaits=True,
        sample="absl::Status: UNAVAILABLE: Failed to send RPC to coordination service. Either the leader "
        "task was preempted/died/restarted unexpectedly or this task is experiencing network issues.",
        source=_RECORDED,
    ),
    KnownMessage(
        key="Terminating process because the JAX",
        pattern=r"absl::Status: UNAVAILABLE: failed to connect to all addresses[^\n]*?"
        r"(?P<host>[\w.]+):(?P<port>\d+): Failed to connect",
        rule="EXIT005",
        says="the leader (process 0, where the coordination service is) answered no more at {host}:{port}",
        fix="read the log of process 0 first, and the kernel's on its host: dmesg -T | grep -i kill",
        proves_not="that it began there: it may itself have ended because of another, or the link broke",
        awaits=True,
        sample="F1124 10:12:13.123456   29801 client.h:80] Terminating process because the JAX distributed "
        "service detected fatal errors. absl::Status: UNAVAILABLE: failed to connect to all addresses; last "
        "error: UNKNOWN: ipv4:10.0.0.1:1234: Failed to connect to remote host: Connection refused",
        source=_SOURCE,
    ),
)
