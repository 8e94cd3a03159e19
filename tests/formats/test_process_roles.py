"""What a process is by its frames and its command line."""

from __future__ import annotations

import pytest

from allaboard.facts import Frame
from allaboard.formats.dumps.process_roles import (
    DATA_LOADER_WORKER,
    POOL_WORKERS,
    WAITING_PARENT,
    process_role,
    program_name,
)

LIB, PACKAGES = "/usr/lib/python3.11", "/v/lib/python3.11/site-packages"
USER = Frame("/h/train.py", 41, "train")
BEGINS = Frame(f"{LIB}/multiprocessing/process.py", 314, "_bootstrap")
WORKS = Frame(f"{PACKAGES}/torch/utils/data/_utils/worker.py", 334, "_worker_loop")
AGENT = Frame(f"{PACKAGES}/torch/distributed/elastic/agent/server/api.py", 923, "_invoke_run")
JOIN = Frame(f"{LIB}/multiprocessing/process.py", 149, "join")
LOADS = Frame(f"{PACKAGES}/torch/utils/data/dataloader.py", 1600, "_shutdown_workers")
POOL = Frame(f"{LIB}/multiprocessing/pool.py", 114, "worker")
SERVES = Frame(f"{LIB}/multiprocessing/forkserver.py", 207, "main")
ONE = Frame(f"{LIB}/multiprocessing/forkserver.py", 312, "_serve_one")


@pytest.mark.parametrize(
    ("frames", "what"),
    [
        ((WORKS, BEGINS, USER), DATA_LOADER_WORKER),
        ((USER, WORKS, BEGINS), DATA_LOADER_WORKER),  # in the data set's own code
        ((AGENT,), "torchrun's agent"),
        ((USER, BEGINS, AGENT), ""),  # a rank that the agent forked
        ((POOL, BEGINS), POOL_WORKERS[0]),
        ((SERVES,), "multiprocessing's fork server"),
        ((USER, BEGINS, ONE, SERVES), ""),
        ((USER, ONE, SERVES), ""),
        ((JOIN, USER), WAITING_PARENT),
        ((JOIN, LOADS, USER), ""),  # a rank at the end of an epoch
        ((USER,), ""),
        ((), ""),
    ],
)
def test_frames_tell_it(frames: tuple[Frame, ...], what: str) -> None:
    assert process_role("", frames) == what


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("/v/bin/python /v/bin/torchrun --nproc_per_node 2 train.py", "torchrun's agent"),
        ("python3 -u -m torch.distributed.launch train.py", "torchrun's agent"),
        ("python /v/bin/accelerate launch train.py", "accelerate launch"),
        ("/v/bin/python3.11 /v/bin/deepspeed train.py", "DeepSpeed's launcher"),
        ("mpirun -n 2 python train.py", "mpirun"),
        (
            "python -c from multiprocessing.resource_tracker import main;main(3)",
            "multiprocessing's resource tracker",
        ),
        ("python -m train --launcher torchrun", ""),
        ("python torchrun.py", ""),
        ("python -c from multiprocessing.spawn import spawn_main; spawn_main()", ""),
        ("", ""),
    ],
)
def test_a_command_tells_it_where_no_frame_does(command: str, what: str) -> None:
    assert process_role(command, ()) == what


def test_who_the_fork_server_forked_has_its_command() -> None:
    command = "python -c from multiprocessing.forkserver import main; main(3, 5)"
    assert process_role(command, (USER, BEGINS, ONE, SERVES)) == ""
    assert process_role(command, ()) == "multiprocessing's fork server"


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("python -u /h/train.py --lr 1", "train.py"),
        ("python -X importtime -W error -m pkg.train", "pkg.train"),
        ("/usr/bin/python3.13t train.py", "train.py"),
        ("python -c import x", ""),
        ("python", ""),
        ("ray::IDLE", "ray::IDLE"),
    ],
)
def test_the_program_of_a_command(command: str, what: str) -> None:
    assert program_name(command) == what
