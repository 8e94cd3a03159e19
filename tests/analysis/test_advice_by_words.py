"""What to try first follows from the things that an error names, however it is worded."""

from __future__ import annotations

import time

import pytest

from allaboard.analysis.log_ends.advice_by_words import advice_by_words
from allaboard.analysis.log_ends.stated_remedy import stated_remedy


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("ring: peer [10.1.0.7]:4411 refused the link", "nc -vz 10.1.0.7 4411"),
        ("cannot connect to (gpu-7, 29500)", "nc -vz gpu-7 29500"),
        ("connection to node-3.lab:7777 timed out", "nc -vz node-3.lab 7777"),
        ("cannot connect to grpc://192.0.2.9:8470. Deadline", "nc -vz 192.0.2.9 8470"),
        ("connect [127.0.1.1]:38373: Connection refused", "/etc/hosts"),
        ("ring: Address already in use", "ss -ltnp"),
        ("CUDA: an illegal memory access was seen", "CUDA_LAUNCH_BLOCKING=1"),
        ("no supported devices found for platform CUDA", "nvidia-smi -L"),
        ("the chip is in use by process with pid 4711", "ps -fp 4711"),
        ("open(/dev/accel3): not permitted", "lsof /dev/accel3"),
        ("launcher 'pdsh' not installed", "install pdsh"),
        ("SLURM_STEP_NODELIST not found in environment", "srun"),
        ('container in pod "job-worker-0" is waiting', "kubectl describe pod job-worker-0"),
        ("the id from [3] did not come", "the log of rank 3"),
        ("could not answer request #4 to trainer_1: eof", "the log of trainer_1"),
        ("rendezvous timed out", "WORLD_SIZE"),
        ("file write failed", "df -h"),
    ],
)
def test_the_first_step_is_about_what_the_error_names(message: str, advice: str) -> None:
    assert advice in advice_by_words(message)


@pytest.mark.parametrize(
    "message",
    ["list index out of range", "bad shard", "'tokens'", "step 3: loss is nan", "bad task 0.0"],
)
def test_an_error_of_the_program_gets_none(message: str) -> None:
    assert advice_by_words(message) == ""


def test_a_place_in_the_code_is_no_address() -> None:
    assert "nc -vz" not in advice_by_words("pair.cc:1234 connect failed at TCPStore.cpp:5500")


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        (
            "TP rank 1 is done, but there are other ranks that didn't finish",
            "logs of the other ranks",
        ),
        ("Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost", "reboot"),
        ("failed to connect to [n1]:29500 (system error: 10049)", "MASTER_ADDR=127.0.0.1"),
        (
            "libcuda.so: cannot open shared object file: No such file",
            "ldconfig -p | grep libcuda.so",
        ),
        ("process 1 terminated with signal SIGKILL", "dmesg -T"),
        ("worker exited with exitcode: -11", "PYTHONFAULTHANDLER=1"),
        ("GlooDeviceFactory: interface or hostname can't be empty", "GLOO_SOCKET_IFNAME"),
    ],
)
def test_what_a_message_names_tells_what_to_do(message: str, advice: str) -> None:
    assert advice in advice_by_words(message)


def test_a_rank_that_speaks_of_the_others_is_not_the_one_to_look_at() -> None:
    assert "log of rank 1" not in advice_by_words("rank 1 is done, other ranks did not come")


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        ("no libuv, run with USE_LIBUV=0 to disable it.", "run with USE_LIBUV=0 to disable it"),
        ("No module named x. Please install it with pip.", "Please install it with pip"),
        ("ranks differ. Try --ddp-backend=legacy. Or not?", "Try --ddp-backend=legacy"),
        ("CUDA error\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1", ""),
        ("bad. Please open an issue on GitHub.", ""),
        ("index 4 is out of bounds", ""),
    ],
)
def test_a_remedy_that_the_message_states_is_taken(message: str, remedy: str) -> None:
    assert stated_remedy(message) == remedy


@pytest.mark.parametrize("piece", ["a-", "a.", "[10.0.0.1]", "Please ", "rank 1 ", "x:"])
def test_long_messages_are_read_in_time(piece: str) -> None:
    began = time.process_time()
    advice_by_words(piece * 4000)
    stated_remedy(piece * 4000)
    assert time.process_time() - began < 1.0
