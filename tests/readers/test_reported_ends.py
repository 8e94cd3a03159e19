"""Ends that a launcher reports by a number, and texts beside them in which a process only dies in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosed_texts import errors

PADDLE = "Container rank {rank} status failed cmd ['/usr/bin/python', 'fit.py'] code {code} log log/w.{rank}"
LOGGED = (
    "distributed.nanny - ERROR - Timed out connecting Nanny to scheduler 'tcp://192.0.2.7:8786'"
)
TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "/v/site-packages/distributed/nanny.py", line 309, in instantiate',
    "tornado.util.TimeoutError: Timeout",
)


@pytest.mark.parametrize(
    ("lines", "rule", "who"),
    [
        (["node-a: rank 7 died from signal 11 and dumped core"], "EXIT001", {7}),
        (["Rank 3 was killed by signal 9"], "EXIT001", {3}),
        (["  exit status of rank 2: killed by signal 11", "  exit status of rank 0: return code 1"],
         "EXIT001", {2}),
        (["0: pc1: 1: process 0 exited without calling finalize"], "EXIT003", {0}),
        (["[c7:mpi_rank_24][error_sighandler] Caught error: Segmentation fault (signal 11)",
          "[c8:mpi_rank_0][error_sighandler] Caught error: Segmentation fault (signal 11)"],
         "EXIT001", {0, 24}),
        ([PADDLE.format(rank=1, code=-6)], "EXIT001", {1}),
        ([PADDLE.format(rank=1, code=1)], "EXIT003", {1}),
    ],
)  # fmt: skip
def test_the_rank_that_a_launcher_reports_is_named(
    tmp_path: Path, lines: list[str], rule: str, who: set[int]
) -> None:
    (finding,) = errors(tmp_path, *lines)
    assert finding.rule == rule and {w.rank for w in finding.who} == who


@pytest.mark.parametrize(
    "line",
    [
        "node-a: rank 7 died from signal 15",
        "rank 3 exited with code 0",
        "rank 2 sends signal 11 to nobody",
        "exit status of rank 2: return code 0",
        "Container rank 0 status ready cmd ['/usr/bin/python', 'fit.py'] code 1 log log/w.0",
    ],
)
def test_words_that_report_no_failure_of_a_rank_are_left(tmp_path: Path, line: str) -> None:
    assert errors(tmp_path, "Epoch 1", line) == []


def test_a_record_with_its_traceback_is_how_the_log_ends(tmp_path: Path) -> None:
    (finding,) = errors(tmp_path, LOGGED, *TRACEBACK, "distributed.dask_worker - INFO - End worker")
    assert "nc -vz 192.0.2.7 8786" in finding.fix


def test_a_record_with_its_traceback_after_which_work_goes_on_is_none(tmp_path: Path) -> None:
    assert errors(tmp_path, LOGGED, *TRACEBACK, "epoch 1 loss 0.5", "epoch 2 loss 0.4") == []


def test_a_tpu_that_another_process_holds_matters_only_if_nothing_is_trained(
    tmp_path: Path,
) -> None:
    held = (
        "f236.cc:165] libtpu.so already in use by another process probably owned by another user."
    )
    assert errors(tmp_path, held, "epoch 1 loss 0.5") == []
    assert [f.rule for f in errors(tmp_path, held)] == ["RES005"]
