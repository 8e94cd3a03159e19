"""The threads in which RPC runs the user's own functions are told from all others."""

from __future__ import annotations

from allaboard.facts import Frame, Task
from allaboard.sampling.rpc_functions import MAX_FUNCTIONS, polling_cpu, rpc_functions

RUNS = Frame("/v/site-packages/torch/distributed/rpc/internal.py", 209, "_run_function")
SCORE = Frame("/home/u/train.py", 14, "score", "time.sleep(10_000)")
SVD = Frame("/v/site-packages/numpy/linalg/linalg.py", 9, "svd")
START = Frame("/usr/lib/python3.11/threading.py", 1002, "_bootstrap")


def test_frames_of_rpc_itself_are_left_out() -> None:
    assert rpc_functions([(SCORE, RUNS)]) == ((SCORE,),)
    assert rpc_functions([(SVD, SCORE, RUNS)]) == ((SVD, SCORE),)


def test_other_threads_and_functions_of_libraries_do_not_count() -> None:
    assert rpc_functions([(SCORE, START), (SVD, RUNS), (RUNS,), ()]) == ()


def test_a_function_of_the_users_own_that_has_the_same_name_does_not_count() -> None:
    own = Frame("/home/u/internal.py", 3, "_run_function")
    assert rpc_functions([(SCORE, own)]) == ()


def test_there_is_a_bound() -> None:
    assert len(rpc_functions([(SCORE, RUNS)] * 16)) == MAX_FUNCTIONS


def test_what_polls_is_told_by_its_name() -> None:
    tasks = [Task("python", 3.5, 0), Task("TP_SHM_reactor", 9.0, 0), Task("TP_UV_loop", 0.5, 0)]
    assert polling_cpu(tasks) == 9.5 and polling_cpu([]) == 0.0
