"""The thread of a Ray actor in which the program runs; frames as Ray 2.60 leaves them."""

from __future__ import annotations

import json

import pytest

from allaboard.facts import Frame
from allaboard.formats.dumps.process_roles import process_role
from allaboard.formats.dumps.thread_dumps.program_thread import program_frames
from allaboard.formats.dumps.thread_dumps.stack_frames import parse_pyspy

RAY = "/v/lib/python3.11/site-packages/ray"
THREADING = "/usr/lib/python3.11/threading.py"
MAIN = (
    Frame(f"{RAY}/_private/worker.py", 1069, "main_loop"),
    Frame(f"{RAY}/_private/workers/default_worker.py", 323, "<module>"),
)
RUNNER = f"{RAY}/train/v2/_internal/execution/worker_group/thread_runner.py"
MONITOR = (Frame(RUNNER, 72, "_monitor_target"), Frame(THREADING, 982, "run"))
SLEEPS = Frame("/home/u/train.py", 10, "prepare_batch")
TRAINS = (
    SLEEPS,
    Frame(f"{RAY}/train/v2/_internal/util.py", 89, "train_fn"),
    Frame(RUNNER, 37, "_run_target"),
    Frame(THREADING, 982, "run"),
)
FIRST_RAY_TRAIN = (SLEEPS, Frame(f"{RAY}/air/_internal/util.py", 98, "run"))
METHOD = (
    Frame("/v/lib/python3.11/site-packages/verl/worker.py", 7, "update_actor"),
    Frame(f"{RAY}/_private/function_manager.py", 740, "actor_method_executor"),
)


@pytest.mark.parametrize("program", [TRAINS, FIRST_RAY_TRAIN, METHOD])
def test_the_program_runs_beside_the_main_thread_of_an_actor(program: tuple[Frame, ...]) -> None:
    assert program_frames(MAIN, [MONITOR, program]) == program


def test_an_actor_that_does_nothing_stands_in_its_main_thread() -> None:
    assert program_frames(MAIN, [MONITOR]) == MAIN


def test_a_method_in_the_main_thread_is_what_the_actor_does() -> None:
    busy = (SLEEPS, METHOD[1], *MAIN)
    assert program_frames(busy, [TRAINS]) == busy


def test_a_program_that_is_no_actor_is_its_main_thread() -> None:
    assert program_frames((SLEEPS,), [TRAINS]) == (SLEEPS,)


def test_a_thread_with_own_code_tells_more() -> None:
    assert program_frames(MAIN, [METHOD, TRAINS]) == TRAINS


def as_spied(name: str, number: int, frames: tuple[Frame, ...]) -> dict[str, object]:
    listed = [{"name": f.function, "filename": f.file, "line": f.line} for f in frames]
    return {"pid": 7, "thread_name": name, "os_thread_id": number, "frames": listed}


def test_it_is_found_in_what_py_spy_prints() -> None:
    threads = [as_spied("MainThread", 7, MAIN), as_spied("TrainingThread(f)", 9, TRAINS)]
    assert parse_pyspy(json.dumps(threads).encode(), 7) == TRAINS


def test_what_else_ray_runs_is_no_rank() -> None:
    assert process_role("ray::TrainController.run", MAIN) == "Ray's own process"
    assert process_role("ray::RayTrainWorker", TRAINS) == ""
    fits = Frame(f"{RAY}/train/v2/api/data_parallel_trainer.py", 180, "fit")
    assert process_role("python train.py", (MAIN[0], fits, SLEEPS)) == "Ray Train's driver"
