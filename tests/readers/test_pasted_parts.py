"""What people paste is cut, broken at a terminal's width, or the last line alone: it is read all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from allaboard.facts import Severity
from diagnosed_texts import diagnose

PODS = "NAME                READY   STATUS             RESTARTS   AGE\n"
HEAD = "Traceback (most recent call last):\n"
FRAME = '  File "/work/train.py", line {n}, in {name}\n    {name}()\n'


def test_a_traceback_without_its_end_is_told(tmp_path: Path) -> None:
    text = HEAD + FRAME.format(n=9, name="main") + FRAME.format(n=4, name="step")
    (finding,) = diagnose(tmp_path, text)
    assert finding.rule == "LOG012" and "train.py:4" in finding.summary
    assert "exception" in finding.fix and not finding.who


def test_the_end_of_a_rank_s_traceback_names_the_rank(tmp_path: Path) -> None:
    text = (
        "[rank2]:     self.step()\n"
        "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    (finding,) = diagnose(tmp_path, text)
    assert finding.rule == "RES001" and [w.rank for w in finding.who] == [2]


@pytest.mark.parametrize(
    "text",
    [
        "[rank2]: step 1\n[rank2]: ConnectionError: no metrics server\n[rank2]: step 2 loss 1.1\n",
        "[rank2]: warming up\n[rank2]: PermissionError: cache of fonts not writable\n",
    ],
)
def test_a_label_before_all_lines_is_no_hook(tmp_path: Path, text: str) -> None:
    assert not [f for f in diagnose(tmp_path, text) if f.severity is Severity.ERROR and f.who]


def test_the_pod_that_fails_is_named_and_not_those_that_wait(tmp_path: Path) -> None:
    rows = (
        "job-worker-0        0/1     Init:1/2           0          2m\n"
        "job-master-0        0/2     CrashLoopBackOff   8          2m\n"
    )
    (finding,) = diagnose(tmp_path, PODS + rows)
    assert finding.rule == "EXIT003" and finding.summary.startswith("job-master-0: ")
    assert "kubectl logs job-master-0" in finding.fix and "--previous" in finding.fix


@pytest.mark.parametrize(
    "status", ["Running", "Completed", "Pending", "ContainerCreating", "Init:0/1"]
)
def test_pods_that_run_or_start_are_left(tmp_path: Path, status: str) -> None:
    assert not diagnose(tmp_path, f"{PODS}job-worker-0        0/1     {status:18} 0          2m\n")


def test_the_message_s_own_remedy_is_the_next_step(tmp_path: Path) -> None:
    error = "RuntimeError: ring of 3 is not closed. Please set ACME_RING=0 and start again.\n"
    (finding,) = diagnose(tmp_path, f"starting\n{error}")
    assert "Please set ACME_RING=0" in finding.fix


def test_a_program_that_raised_its_own_error_is_told_its_remedy_too(tmp_path: Path) -> None:
    text = HEAD + FRAME.format(n=9, name="main") + "ValueError: bad shard. Try --shards=4.\n"
    (finding,) = diagnose(tmp_path, text)
    assert "Try --shards=4" in finding.fix and "train.py:9" in finding.fix


def test_lines_that_a_terminal_broke_are_read_whole(tmp_path: Path) -> None:
    frames = "".join(
        f"frame #{n}: c10d::ProcessGroupNCCL::some_function_with_a_long_name_{n}(std::string, int) + 0x1 "
        "(0x7 in /opt/environments/training/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so)\n"
        for n in range(5)
    )
    line = (
        "[PG ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog thread terminated with exception: "
        "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=BROADCAST, "
        "NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800010 milliseconds before timing out.\n"
    )
    broken = "".join(
        part[i : i + 110] + "\n"
        for part in (frames + line).splitlines()
        for i in range(0, len(part), 110)
    )
    (finding,) = diagnose(tmp_path, broken)
    assert finding.rule == "LOG001" and "collective 4" in finding.summary
    assert finding.evidence[0].origin.endswith(":11")


@pytest.mark.parametrize("word", ["Killedng: 12%|##   | 3/9", "Killed/9 [00:01<00:02]"])
def test_the_shell_s_word_over_a_progress_bar_is_read(tmp_path: Path, word: str) -> None:
    (finding,) = diagnose(tmp_path, f"loading\n{word}\n")
    assert "SIGKILL" in finding.summary and "dmesg" in finding.fix


def test_killers_are_no_killed(tmp_path: Path) -> None:
    assert not diagnose(tmp_path, "loading\nKillers of the Flower Moon: 3/9\n")


def test_a_message_that_somebody_broke_into_lines_is_read(tmp_path: Path) -> None:
    text = (
        "[Rank 4] Watchdog caught collective operation timeout:\n"
        "WorkNCCL(SeqNum=27732, OpType=_REDUCE_SCATTER_BASE,\n"
        "         NumelIn=215585536, NumelOut=26948192, Timeout(ms)=1800000)\n"
        "         ran for 1800003 milliseconds before timing out.\n"
    )
    (finding,) = diagnose(tmp_path, text)
    assert finding.rule == "LOG001" and "_REDUCE_SCATTER_BASE, collective 27732" in finding.summary


def test_a_traceback_in_an_object_over_several_lines_is_read(tmp_path: Path) -> None:
    stack = HEAD + FRAME.format(n=9, name="main") + "ValueError: batch is empty\n"
    message = {"message": "ValueError: batch is empty", "extraInfo": {"py_callstack": stack}}
    text = "[ERROR] 2026-01-02 03:04:05,678 error_handler: "
    text += json.dumps({"message": message}, indent=2) + "\n"
    (finding,) = diagnose(tmp_path, "starts\n" + text + "ends\n")
    assert finding.rule == "EXIT002" and "ValueError at train.py:9" in finding.summary
    assert "job.log:2" in finding.fix
    assert not diagnose(tmp_path, json.dumps({"config": {"steps": 9, "why": HEAD}}, indent=2))


def test_a_traceback_that_lost_its_line_ends_names_a_file(tmp_path: Path) -> None:
    text = (
        'Traceback (most recent call last):      File "/work/train.py", line 9, in <module>      main()\n'
        '      File "/work/train.py", line 4, in main      dist.barrier()\n'
        "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1191, invalid usage, NCCL version 2.10.3\n"
    )
    (finding,) = diagnose(tmp_path, text)
    assert '"' not in finding.summary
    assert not [e for e in finding.evidence if '"' in e.origin]


@pytest.mark.parametrize(
    "line",
    [
        "Aug 18 03:19:11 node7 kernel: Killed process 7748 (python) total-vm:12907828kB, anon-rss:1kB",
        "[12345.678] Killed process 7748 (python), UID 1000, total-vm:12907828kB, anon-rss:1kB",
        "[12345.678] Memory cgroup out of memory: Killed process 7748, UID 1000, (python) total-vm:1kB",
    ],
)
def test_a_line_of_an_older_kernel_alone_tells_that_memory_ran_out(
    tmp_path: Path, line: str
) -> None:
    (finding,) = diagnose(tmp_path, line + "\n")
    assert finding.rule == "RES001" and "killed process 7748 (python)" in finding.summary


def test_a_process_that_a_person_killed_lacked_no_memory(tmp_path: Path) -> None:
    assert not diagnose(tmp_path, "watchdog: Killed process 7748 (python) by request of eve\n")


def test_what_a_login_script_printed_is_no_name_of_a_host(tmp_path: Path) -> None:
    text = (
        "10.1.0.4: [W socket.cpp:601] [c10d] The IPv6 network addresses of ({0}, 29500) cannot be retrieved "
        "(gai error: -2 - Name or service not known).\n"
    )
    (finding,) = diagnose(tmp_path, text.format("/root/cuda.bashrc"))
    assert finding.rule == "NET001" and "which is no name of a host" in finding.summary
    assert "hostname -I" in finding.fix
    (finding,) = diagnose(tmp_path, text.format("node-7.lab"))
    assert "the name node-7.lab of the meeting place" in finding.summary


def test_a_host_whose_name_was_taken_out_is_told_as_it_stands(tmp_path: Path) -> None:
    text = (
        "srun: error: Task launch for StepId=1254.4 failed on node [NODENAME]: Unable to layout tasks on "
        "given cpus\nsrun: error: Application launch failed: Unable to layout tasks on given cpus\n"
    )
    (finding,) = diagnose(tmp_path, text)
    assert finding.rule == "JOIN001" and "on [NODENAME]" in finding.summary


def test_lines_that_a_terminal_filled_with_spaces_are_joined(tmp_path: Path) -> None:
    lines = [
        "INFO:tune:Saving checkpoint. Retrieving full model state dict...",
        "INFO:tune:Getting full model state dict took 109.51 secs",
        "INFO:tune:Retrieving optimizer state dict...",
        "[rank4]:[E430 05:09:48.828088908 ProcessGroupNCCL.cpp:632] [Rank 4] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=9387, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
        "Timeout(ms)=600000) ran for 600005 milliseconds before timing out.",
    ]
    width = 150
    rows = [line[n : n + width] for line in lines for n in range(0, len(line), width)]
    (finding,) = diagnose(tmp_path, "".join(f"{row:{width}}\n" for row in rows))
    assert finding.rule == "LOG001" and "600000 ms in ALLREDUCE" in finding.summary


def test_memory_of_a_mac_is_told_with_its_own_limit(tmp_path: Path) -> None:
    said = (
        "RuntimeError: MPS backend out of memory (MPS allocated: 11.14 GB, other allocations: 6.65 GB, max "
        "allowed: 18.13 GB). Tried to allocate 375.40 MB on private pool.\n"
    )
    (finding,) = diagnose(tmp_path, HEAD + FRAME.format(n=9, name="main") + said)
    assert finding.rule == "RES001" and "PYTORCH_MPS_HIGH_WATERMARK_RATIO" in finding.fix
