"""The line that says why a process ended, and not the native stack that is written after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.agent.output.terminal import Terminal
from allaboard.agent.output.worker_log import WorkerLog
from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.facts.samples import ended_member

ABORTED = b"Fatal Python error: Aborted\n"

SEGFAULT = b"""Fatal Python error: Segmentation fault

Current thread 0x00007f0000000000 (most recent call first):
  File "/home/u/train.py", line 3 in step
"""

FATAL = b"F1122 14:54:53.751254   18071 client.h:80] Terminating process because the JAX distributed service"
TRAIL = (
    b"Additional GRPC error information from remote target coordination_service while calling X",
    b':UNKNOWN:Error received from peer  {grpc_message:"Socket closed", grpc_status:14}',
    b"*** Check failure stack trace: ***",
    b"    @     0x7f2970440634  absl::lts_20260107::log_internal::LogMessage::SendToLog()",
    b"    @     0x7f2977ca71f5  (unknown)",
)


@pytest.mark.usefixtures("capfd")
def test_a_native_stack_is_no_last_line(tmp_path: Path) -> None:
    log = WorkerLog("0", 0, tmp_path / "log", Terminal(), lambda _: None)
    log.write_output(2, b"\n".join((b"step 80", FATAL, *TRAIL, b"")))
    log.close()
    assert log.last_line == FATAL.decode()
    assert b"0x7f2977ca71f5" in (tmp_path / "log").read_bytes()


WATCHDOG = (
    "what():  [PG ID 0 PG GUID 0(default_pg) Rank 0] Process group watchdog thread terminated with "
    "exception: [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=808, OpType=ALLREDUCE"
)
AFTER_IT = (
    "Exception raised from checkTimeout at ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:635 (most "
    "recent call first):",
    "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x98 (0x7f1 in libc10.so)",
    "",
    "Fatal Python error: Aborted",
    "",
    "Thread 0x00007f0000000000 (most recent call first):",
    '  File "/home/u/train.py", line 3 in step',
    "Extension modules: numpy.core._multiarray_umath, torch._C (total: 30)",
)


@pytest.mark.usefixtures("capfd")
def test_what_aborted_a_rank_is_its_last_line_and_shows_a_victim(tmp_path: Path) -> None:
    log = WorkerLog("0", 0, tmp_path / "rank0.log", Terminal(), lambda _: None)
    log.write_output(2, "\n".join(["  " + WATCHDOG, *AFTER_IT, ""]).encode())
    log.close()
    assert log.last_line == WATCHDOG
    assert has_lost_peer(ended_member(0, signal=6, last_line=log.last_line))


@pytest.mark.usefixtures("capfd")
def test_a_crash_of_which_faulthandler_alone_tells_keeps_its_words(tmp_path: Path) -> None:
    log = WorkerLog("0", 0, tmp_path / "rank0.log", Terminal(), lambda _: None)
    lines = ["epoch 3", "Fatal Python error: Segmentation fault", *AFTER_IT[4:], ""]
    log.write_output(2, "\n".join(lines).encode())
    log.close()
    assert log.last_line == "Fatal Python error: Segmentation fault"


@pytest.mark.parametrize("is_one_read", [True, False])
@pytest.mark.parametrize(
    ("rows", "last_line"),
    [
        ((b"step 1\n", b"\n", b"frame #1: main\n"), "step 1"),
        ((b"  what(): no route\n", ABORTED), "what(): no route"),
        ((b"  what(): no route\n", ABORTED, ABORTED), "what(): no route"),
        ((b"step 1\n", ABORTED), "Fatal Python error: Aborted"),
        ((ABORTED, b"step 1\n"), "step 1"),
        ((b"  what(): no route\n", b"step 1\n", ABORTED), "Fatal Python error: Aborted"),
        ((b"\x1b[31mred\x1b[0m\n",), "red"),
        ((b"\n", b"\n"), ""),
        ((b"step 1\n", b"I0000 00:00:1795717938.53 249 port.cc:153] options are on.\n"), "step 1"),
        ((b"step 1\n", b"2026-01-02 03:04:05.678901: I tensorflow/x.cc:3] tuned\n"), "step 1"),
        ((b"I0000 00:00:1795717938.53 249 port.cc:153] options are on.\n",), ""),
        ((b"I0000 of my shards are read\n",), "I0000 of my shards are read"),
    ],
)
def test_the_last_line_is_the_same_in_one_read_and_in_many(
    tmp_path: Path, rows: tuple[bytes, ...], last_line: str, is_one_read: bool
) -> None:
    log = WorkerLog("0", 0, tmp_path / "rank0.log", Terminal(), lambda _: None)
    for data in (b"".join(rows),) if is_one_read else rows:
        log.write_output(1, data)
    assert log.last_line == last_line


CRASHED = (
    "Fatal Python error: Segmentation fault",
    "",
    "Thread 0x00007f0000000001 (most recent call first):",
    '  File "/home/u/feed.py", line 3 in fill',
    "",
    "Current thread 0x00007f0000000000 (most recent call first):",
    '  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at',
    '  File "/home/u/train.py", line 19 in decode',
    "",
    "Extension modules: numpy.core._multiarray_umath, torch._C (total: 30)",
    "",
)


@pytest.mark.usefixtures("capfd")
def test_a_crash_says_at_which_line_of_the_program(tmp_path: Path) -> None:
    log = WorkerLog("0", 0, tmp_path / "rank0.log", Terminal(), lambda _: None)
    log.write_output(2, "\n".join(["step 80", *CRASHED]).encode())
    log.write_output(2, b"")
    log.close()
    assert log.last_words() == "Fatal Python error: Segmentation fault, train.py:19 in decode"


@pytest.mark.usefixtures("capfd")
def test_a_line_that_reports_no_crash_stays_as_it_is(tmp_path: Path) -> None:
    log = WorkerLog("0", 0, tmp_path / "rank0.log", Terminal(), lambda _: None)
    log.write_output(2, b"Fatal Python error: Segmentation fault\n\n")
    assert log.last_words() == "Fatal Python error: Segmentation fault"
    log.write_output(2, b"no seats left\n")
    log.close()
    assert log.last_words() == "no seats left"


ASSERTIONS = "".join(
    "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1515: indexSelectSmallIndex: block: [0,0,0], thread: "
    f"[{thread},0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
    for thread in range(4)
)
AFTER_ASSERTION = (
    "[rank1]: torch.AcceleratorError: CUDA error: device-side assert triggered\n"
    "[rank1]:[W1127 16:28:23.805855629 CUDAEvent.h:57] Warning: CUDA warning: device-side assert triggered "
    "(function ~CUDAEvent)\n"
)
"""What a rank printed on one H200, with PyTorch 2.11."""


@pytest.mark.usefixtures("capfd")
@pytest.mark.parametrize(
    "last", ["Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n", ""]
)
def test_the_assertion_that_failed_on_the_gpu_is_the_last_word(tmp_path: Path, last: str) -> None:
    log = WorkerLog("1", 0, tmp_path / "rank1.log", Terminal(), lambda _: None)
    for text in ("ready\n", ASSERTIONS, AFTER_ASSERTION, last):
        log.write_output(2, text.encode() or b"\n")
    assert log.last_words() == (
        "Assertion `srcIndex < srcSelectDimSize` failed in the kernel indexSelectSmallIndex "
        "(Indexing.cu:1515)"
    )
    log.write_output(2, b"ValueError: something else, after a restart\n")
    assert log.last_words() == "ValueError: something else, after a restart"
    log.close()


@pytest.mark.parametrize(
    ("writes", "has_crashed", "said"),
    [
        # The pipes are read in any order: what was printed before the crash may come after its report.
        (((2, SEGFAULT), (1, b"step 80\n")), True, "Fatal Python error: Segmentation fault"),
        (((1, b"step 80\n"), (2, SEGFAULT)), True, "Fatal Python error: Segmentation fault"),
        # A process of a data loader crashed, and the worker went on until somebody killed it.
        (((2, SEGFAULT), (1, b"step 80\n")), False, "step 80"),
        (((2, SEGFAULT), (2, b"went on\n"), (1, b"step 80\n")), True, "step 80"),
    ],
)
@pytest.mark.usefixtures("capfd")
def test_a_report_of_a_crash_counts_in_whatever_order_the_pipes_are_read(
    tmp_path: Path, writes: tuple[tuple[int, bytes], ...], has_crashed: bool, said: str
) -> None:
    log = WorkerLog("0", 0, tmp_path / "rank0.log", Terminal(), lambda _: None)
    for fd, data in writes:
        log.write_output(fd, data)
    log.close()
    words = log.last_words(has_crashed)
    assert words.startswith(said) and ("train.py:3 in step" in words) is has_crashed & (
        said != "step 80"
    )


@pytest.mark.usefixtures("capfd")
def test_the_crash_of_a_process_that_the_worker_has_started(tmp_path: Path) -> None:
    log = WorkerLog("0", 0, tmp_path / "rank0.log", Terminal(), lambda _: None)
    assert log.only_crash() == ""
    log.write_output(2, SEGFAULT + b"ProcessExitedException: process 1 terminated with SIGSEGV\n")
    assert log.only_crash() == "Fatal Python error: Segmentation fault, train.py:3 in step"
    assert log.last_words() == "ProcessExitedException: process 1 terminated with SIGSEGV"
    log.write_output(2, SEGFAULT)
    assert log.only_crash() == "", "of two crashes it is not known which was whose"
