"""Ranks by the arguments of functions and of command lines."""

from __future__ import annotations

import json

import pytest

from allaboard.facts import Frame
from allaboard.formats.dumps.thread_dumps.stated_identity import (
    FrameLocals,
    parse_frames_with_locals,
    stated_by_init,
    stated_by_program,
    task_by_command,
)

TORCH = "/site-packages/torch/distributed"
USER = Frame("/home/u/train.py", 11, "work")


def frame(file: str, function: str, **values: str) -> FrameLocals:
    return FrameLocals(Frame(file, 1, function), tuple(values.items()))


def test_the_arguments_of_init_are_the_rank() -> None:
    frames = (
        frame(f"{TORCH}/rendezvous.py", "_create_c10d_store", hostname='"10.0.0.1"', port="29500",
              rank="2", world_size="4"),
        frame(f"{TORCH}/distributed_c10d.py", "init_process_group", init_method="None",
              rank="-1", world_size="-1", backend='"gloo"'),
        FrameLocals(USER, (("rank", "0"),)),
    )  # fmt: skip
    assert stated_by_init(frames) == {
        "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500", "RANK": "2", "WORLD_SIZE": "4"
    }  # fmt: skip


def test_the_arguments_of_jax_are_the_process() -> None:
    frames = (
        frame("/x/jax/_src/distributed.py", "initialize", coordinator_address='"h:1234"',
              num_processes="3", process_id="0", local_device_ids="None"),
    )  # fmt: skip
    assert stated_by_init(frames) == {
        "JAX_COORDINATOR_ADDRESS": "h:1234", "JAX_NUM_PROCESSES": "3", "JAX_PROCESS_ID": "0"
    }  # fmt: skip


def test_a_function_of_the_user_with_that_name_is_no_init() -> None:
    assert stated_by_init((frame("/home/u/dist.py", "init_process_group", rank="2"),)) == {}


def test_a_variable_comes_before_the_command_line() -> None:
    frames = (FrameLocals(USER, (("rank", "1"), ("world_size", "3"), ("lr", "0.1"))),)
    said = stated_by_program(frames, ("python", "train.py", "--rank", "7"))
    assert said == {"RANK": "1", "WORLD_SIZE": "3"}
    assert stated_by_program((), ("python", "train.py", "--rank", "7")) == {"RANK": "7"}
    assert (
        stated_by_program((), ("python", "train.py", "--lora-rank", "8", "--rank-loss", "1")) == {}
    )


def test_the_parent_that_spawns_counts_its_children_and_has_no_rank() -> None:
    spawn = "/x/site-packages/torch/multiprocessing/spawn.py"
    assert stated_by_program((frame(spawn, "start_processes", i="2"),), ()) == {}
    assert stated_by_program((frame(spawn, "_wrap", i="2"),), ()) == {"RANK": "2"}


def test_what_the_forking_parent_had_is_not_the_childs() -> None:
    frames = (
        FrameLocals(USER, (("rank", "1"),)),
        frame("/usr/lib/python3.11/multiprocessing/process.py", "_bootstrap"),
        FrameLocals(USER, (("rank", "0"),)),
    )
    assert stated_by_program(frames, ()) == {"RANK": "1"}


@pytest.mark.parametrize(
    "line",
    [
        "python t.py --ps_hosts=a:1,b:1 --worker_hosts=c:1 --job_name=ps --task_index=1",
        "python t.py --job_name ps --task_index 1 --worker_hosts c:1 --ps_hosts a:1,b:1",
    ],
)
def test_the_flags_of_tensorflow_one_are_a_cluster(line: str) -> None:
    assert json.loads(task_by_command(line.split())) == {
        "cluster": {"ps": ["a:1", "b:1"], "worker": ["c:1"]},
        "task": {"type": "ps", "index": 1},
    }


def test_other_flags_are_no_cluster() -> None:
    assert task_by_command(["python", "t.py", "--job_name=sweep7", "--task_index=1"]) == ""
    assert task_by_command(["python", "t.py", "--allowed_hosts=a,b", "--job_name=ps"]) == ""
    assert task_by_command(["t.py", "--workers", "4", "--job", "worker", "--task", "0"]) == ""
    assert task_by_command(["t.py", "--chief", "node0", "--job=chief"]) == ""


@pytest.mark.parametrize(
    "line",
    [
        "t.py --ps=a:1,b:2 --workers=c:3 --job=ps --task=1",
        "t.py --ps_addresses a:1,b:2 --worker c:3 --role ps --index 1",
    ],
)
def test_a_task_by_flags_of_the_programs_own(line: str) -> None:
    assert json.loads(task_by_command(line.split())) == {
        "cluster": {"ps": ["a:1", "b:2"], "worker": ["c:3"]},
        "task": {"type": "ps", "index": 1},
    }


def test_what_is_no_dump_has_no_frames() -> None:
    assert parse_frames_with_locals(b"no json", 1) == ()
