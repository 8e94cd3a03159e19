"""A parent that sees only that a child is gone, and what else the logs tell: which of the two is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosed_texts import errors

RAYLET = (
    "(raylet) A worker died or was killed while executing a task by an unexpected system error. To "
    "troubleshoot the problem, check the logs for the dead worker. RayTask ID: ff Worker ID: ab Node ID: "
    "12 Worker IP address: 10.0.0.7 Worker port: 10012 Worker PID: {pid} Worker exit type: SYSTEM_ERROR"
)
WATCHDOG = (
    "(TrainWorker pid={pid}, ip=10.0.0.7) [rank{rank}]:[E429 12:07:50.107371021 ProcessGroupNCCL.cpp:629] "
    "[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=BROADCAST, "
    "NumelIn=4, NumelOut=4, Timeout(ms)=1800000) ran for 1800081 milliseconds before timing out."
)
DEEPSPEED = (
    "[2024-03-20 20:31:29,269] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python3', '-u', "
    "'train.py', '--local_rank={last}', '--deepspeed', 'ds.json'] exits with return code = {code}"
)


def test_whoever_died_without_a_word_is_why_the_others_waited(tmp_path: Path) -> None:
    (finding,) = errors(
        tmp_path, RAYLET.format(pid=41), WATCHDOG.format(pid=42, rank=1), RAYLET.format(pid=42)
    )
    assert finding.rule == "EXIT001" and "pid 41" in finding.summary


def test_whoever_wrote_why_it_ended_is_reported_by_that(tmp_path: Path) -> None:
    (finding,) = errors(tmp_path, WATCHDOG.format(pid=42, rank=1), RAYLET.format(pid=42))
    assert finding.rule == "LOG001"


@pytest.mark.parametrize(
    ("last", "code", "says"),
    [
        (7, -9, "one of the 8 processes that DeepSpeed started on this host was killed by SIGKILL"),
        (0, -11, "the process that DeepSpeed started on this host was killed by SIGSEGV"),
        (1, 1, "one of the 2 processes that DeepSpeed started on this host ended with exit code 1"),
    ],
)
def test_the_last_command_of_deepspeed_is_no_culprit(
    tmp_path: Path, last: int, code: int, says: str
) -> None:
    (finding,) = errors(tmp_path, DEEPSPEED.format(last=last, code=code))
    assert finding.summary == says and finding.who == ()


def test_an_exception_says_more_than_the_code_that_deepspeed_reports(tmp_path: Path) -> None:
    (finding,) = errors(
        tmp_path,
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "    d['x']",
        "KeyError: 'x'",
        DEEPSPEED.format(last=1, code=1),
    )
    assert finding.rule == "EXIT002"


NO_NODE = "9s  Warning  FailedScheduling  pod/w-1  0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
DASHES = "-" * 74
NCCL = "node1:75:95 [2] "


@pytest.mark.parametrize(
    ("follows", "rules"),
    [
        (f"{NCCL}NCCL INFO init.cc:1012 -> 3", ["LOG010"]),
        (f"{NCCL}NCCL INFO Connected all rings", []),
    ],
)
def test_an_unknown_warning_of_nccl_counts_if_nccl_failed_after_it(
    tmp_path: Path, follows: str, rules: list[str]
) -> None:
    found = errors(tmp_path, f"{NCCL}transport/new.cc:7 NCCL WARN The flux is not aligned", follows)
    assert [f.rule for f in found] == rules
    assert all("The flux is not aligned" in f.summary for f in found)


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        (
            "[2025-03-09 00:57:15 TP4] Watchdog timeout (self.watchdog_timeout=300)",
            ["LOG001"],
        ),
        (
            "[2026-03-09 00:57:15 DP1 TP4] Scheduler watchdog timeout (self.watchdog_timeout=300, "
            "self.soft=False)",
            ["LOG001"],
        ),
        (
            "[2026-03-09 00:57:15 TP4] Scheduler watchdog timeout (self.watchdog_timeout=5, self.soft=True)",
            [],
        ),
        ("EI0006: 2024-08-05-18:15:21.270.506 Getting socket times out. Reason: x", ["LOG001"]),
        (
            "EL0004: 2024-08-05-18:15:21.270.506 Failed to allocate memory. Reason: the device is full",
            ["LOG010"],
        ),
        ("the report E2024: see Reason: unknown", []),
        (
            "2023:11:28-16:35:45:(35980) |CCL_ERROR| exec.cpp:134 start_workers: condition failed",
            ["LOG010"],
        ),
        (
            "2023:11:28-16:35:45:(35980) |CCL_WARN| exec.cpp:134 start_workers: condition failed",
            [],
        ),
        (
            f"{DASHES}\nIt looks like MPI_INIT failed for some reason; your parallel process is\nlikely to "
            "abort.\n\n  PML add procs failed\n  --> Returned 'Not found' (-13) instead of 'Success' (0)\n"
            f"{DASHES}",
            ["LOG012"],
        ),
        (
            "Abort(2138767) on node 0 (rank 3 in comm 0): Fatal error in PMPI_Init: Unknown error class, "
            "error "
            "stack:\nMPIR_Init_thread(189)........: \nfind_provider(2819)..........: OFI fi_getinfo() failed",
            ["LOG012"],
        ),
    ],
)  # fmt: skip
def test_words_of_vendors_and_servers(tmp_path: Path, line: str, rules: list[str]) -> None:
    assert [f.rule for f in errors(tmp_path, line)] == rules


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (
            ("Name:   train-worker-1", " Warning  Evicted  kubelet  The node was low on resource: memory."),
            "Kubernetes evicted the pod train-worker-1: its node ran out of memory",
        ),
        (
            (NO_NODE,),
            "Kubernetes finds no node for the pod w-1: 0/3 nodes are available: 3 Insufficient nvidia.com"
            "/gpu",
        ),
        (
            (
                NO_NODE,
                "2s  Normal   Scheduled         pod/w-1  Successfully assigned ns/w-1 to node-7",
            ),
            "",
        ),
        (("the node was low on resources, says the report; evicted: nobody",), ""),
    ],
)  # fmt: skip
def test_events_of_kubernetes(tmp_path: Path, lines: tuple[str, ...], says: str) -> None:
    assert [f.summary for f in errors(tmp_path, *lines)] == ([says] if says else [])


@pytest.mark.parametrize(
    ("file", "message", "blamed"),
    [
        ("/v/site-packages/newlib/ops.py", "native/plan.cc:88 : the plan is empty", ""),
        (
            "/v/site-packages/newlib/ops.py",
            "the plan is empty",
            "see what train.py:3 passes to newlib",
        ),
        ("train.py", "native/plan.cc:88 : the plan is empty", "fix train.py:7"),
    ],
)
def test_a_check_in_native_code_of_a_library_is_no_fault_of_the_line_that_called_it(
    tmp_path: Path, file: str, message: str, blamed: str
) -> None:
    (finding,) = errors(
        tmp_path,
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "    run()",
        f'  File "{file}", line 7, in run',
        "    _native.run()",
        f"RuntimeError: {message}",
    )
    assert blamed in finding.fix
    assert ("train.py" in finding.fix) == bool(blamed)


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (
            "[Rank 0]: failed to ack ranks 3, 5 in monitoredBarrier; these ranks may remain blocked",
            "rank 3, 5 came to a monitored barrier, but went away before rank 0 could answer",
        ),
        (
            "NCCL communicator was aborted after a previous error",
            "a collective of this rank had failed before, and its communicator was given up",
        ),
    ],
)
def test_words_of_torchcomms(tmp_path: Path, message: str, says: str) -> None:
    (finding,) = errors(
        tmp_path,
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "    dist.monitored_barrier()",
        '  File "/v/site-packages/torch/distributed/distributed_c10d.py", line 7, in monitored_barrier',
        "    return group.monitored_barrier(timeout)",
        f"RuntimeError: {message}",
    )
    assert says in finding.summary and "fix train.py" not in finding.fix
