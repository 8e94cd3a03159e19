"""What must not be taken for the faults that were recorded on a GPU; the recordings are in bench/field."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.analysis.resources.gpu_memory_report import memory_fix, read_gpu_memory_report
from allaboard.diagnosis.instruments import nvidia_smi_xml
from allaboard.diagnosis.instruments.nccl_start import read_log as read_start
from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Exhibit, Finding
from allaboard.rules.engine.catalogue import load_catalogue

START = (
    "vm:22:22 [0] NCCL INFO ncclCommInitRankConfig comm 0x12c0 rank 0 nranks {size} cudaDev 0 nvmlDev 0 "
    "busId 60 commId 0xce4f - Init START\n"
)
INFO = "vm:22:22 [0] NCCL INFO Bootstrap timings total 0.408134\n"
LOST = (
    "[2026-11-27 16:28:34] vm:16:19 [0] misc/socket.cc:72 NCCL WARN socketProgress: Connection closed by "
    "remote peer localhost<44804>\n"
)
TIMEOUT = (
    "[rank{rank}]:[E1127 16:28:13.5 ProcessGroupNCCL.cpp:689] [Rank {rank}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=19, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=12000) "
    "ran for 12045 milliseconds before timing out.\n"
)
CUDA_FAILED = (
    "vm:19:21 [0] misc/strongstream.cc:402 NCCL WARN Cuda failure 'device-side assert triggered'\n"
)
TORCH_FAILED = "[rank1]: torch.AcceleratorError: CUDA error: device-side assert triggered\n"
XLA_TAKEN = (
    "E1127 16:32:18.315333 5226 cuda_executor.cc:1365] [0] Failed to allocate device memory of 104.85GiB "
    "(112583507968 bytes): RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of memory\n"
)
OUT_OF_MEMORY = (
    "CUDA out of memory. Tried to allocate {wanted} GiB. GPU 0 has a total capacity of 139.80 GiB of "
    "which 53.09 GiB is free. Process 5654 has {held} GiB memory in use. Including non-PyTorch memory, "
    "this process has 1.15 GiB memory in use. Of the allocated memory 65.01 MiB is allocated by PyTorch"
)
XML = "<nvidia_smi_log><gpu id='00000000:00:0{number}.0'><uuid>GPU-{number}</uuid></gpu></nvidia_smi_log>\n"


def findings(folder: Path, *logs: str) -> tuple[Finding, ...]:
    for rank, text in enumerate(logs):
        (folder / f"rank{rank}.log").write_text(text)
    return diagnose_paths(
        [folder / f"rank{r}.log" for r in range(len(logs))], load_catalogue()
    ).findings


@pytest.mark.parametrize(
    "text",
    [
        START.format(size=2) + INFO + START.format(size=2).replace("START", "COMPLETE"),
        START.format(size=2) + INFO + "step 0 loss 0.37\n",
        START.format(size=2) + "vm:22:22 [0] init.cc:904 NCCL WARN Duplicate GPU detected\n",
        START.format(size=2) + "vm:22:22 [0] NCCL INFO init.cc:421 -> 5\n",
        START.format(size=1) + INFO,
        INFO,
    ],
    ids=["ended", "trains", "warned", "failed", "alone", "not begun"],
)
def test_a_start_that_is_over_is_not_reported(text: str) -> None:
    assert read_start(Exhibit(name="rank0.log", data=text.encode(), rank=0)) is None


def test_a_start_is_not_reported_beside_a_failure(tmp_path: Path) -> None:
    head = 'Traceback (most recent call last):\n  File "/job/train.py", line 7, in <module>\n'
    raised = head + "    f()\nKeyError: 1\n"
    (finding,) = findings(tmp_path, START.format(size=2) + INFO, raised)
    assert finding.rule == "EXIT002"


def test_if_all_ranks_are_in_the_start_the_way_between_them_is_next(tmp_path: Path) -> None:
    logs = [START.format(size=2).replace("rank 0", f"rank {r}") + INFO for r in range(2)]
    (finding,) = findings(tmp_path, *logs)
    assert not finding.who and "NCCL_SOCKET_IFNAME" in finding.fix


def test_a_peer_that_was_lost_before_the_timeout_is_reported(tmp_path: Path) -> None:
    rules = [f.rule for f in findings(tmp_path, LOST + TIMEOUT.format(rank=0), "step 3\n")]
    assert "EXIT005" in rules
    rules = [f.rule for f in findings(tmp_path, TIMEOUT.format(rank=0) + LOST, "step 3\n")]
    assert "EXIT005" not in rules


def test_an_error_of_cuda_that_another_rank_raised_is_no_echo(tmp_path: Path) -> None:
    assert len(findings(tmp_path, CUDA_FAILED, TORCH_FAILED)) == 2
    assert len(findings(tmp_path, "step 3\n", TORCH_FAILED + CUDA_FAILED)) == 1


def test_memory_that_jax_did_not_get_is_no_failure_alone(tmp_path: Path) -> None:
    assert findings(tmp_path, XLA_TAKEN + "step 3 loss 0.1\n", "step 3 loss 0.1\n") == ()


@pytest.mark.parametrize(
    ("wanted", "held", "expected"),
    [
        ("69.90", "84.39", "ps -o pid,user,etime,args -p 5654"),
        ("69.90", "0.52", ""),
        ("139.00", "20.00", ""),
        ("800.00", "84.39", "larger than the GPU"),
    ],
    ids=["held by another", "a context alone", "too much beside this process", "never fits"],
)
def test_only_a_holder_whose_memory_was_lacking_is_blamed(
    wanted: str, held: str, expected: str
) -> None:
    report = read_gpu_memory_report(OUT_OF_MEMORY.format(wanted=wanted, held=held))
    assert report is not None
    assert (
        memory_fix(report).startswith(expected)
        if "ps" in expected
        else expected in memory_fix(report)
    )
    assert bool(memory_fix(report)) == bool(expected)


def test_in_a_container_the_process_itself_is_listed_like_another() -> None:
    message = OUT_OF_MEMORY.format(wanted="69.90", held="84.39")
    own_share = " Including non-PyTorch memory, this process has 1.15 GiB memory in use."
    report = read_gpu_memory_report(message.replace(own_share, ""))
    assert report is not None and not report.holders and not memory_fix(report)


def test_what_stands_around_the_xml_of_nvidia_smi_is_no_part_of_it() -> None:
    text = "$ nvidia-smi -q -x\n" + XML.format(number=6) + "[exit 0]\n" + XML.format(number=7)
    testimony = nvidia_smi_xml.read_log(Exhibit(name="smi.xml", data=text.encode()))
    assert testimony is not None and not testimony.notes
    assert [g.uuid for g in testimony.hardware.gpus] == ["GPU-6", "GPU-7"]
