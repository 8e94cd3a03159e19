"""The error with which any program's log ends, and what may follow it."""

from __future__ import annotations

import pytest

from allaboard.analysis.log_ends.final_errors import final_error, final_sentence, stated_failure

RECORD = "2025-06-01 10:01:00,123 ERROR acme.net: ring of 4 was not closed"


@pytest.mark.parametrize(
    "following",
    [
        ["The ring was:", "/job:worker/task:3", "/job:worker/task:7"],
        ["2025-06-01 10:01:02,003 INFO acme.master: job failed, all relaunches are used"],
        ["2025-06-01 10:01:02,003 INFO acme.master: shutting down the executors"],
        ["", "srun: error: Timed out waiting for job step to complete"],
    ],
)
def test_what_belongs_to_an_error_does_not_show_that_its_program_went_on(
    following: list[str],
) -> None:
    assert final_error(["acme 1.2 starts", RECORD, *following]) == 1


@pytest.mark.parametrize(
    "following",
    [
        ["2025-06-01 10:01:02,003 INFO acme.net: ring of 3 is closed"],
        ["step 40 loss 0.5"],
        ["done"],
        [f"a line of its output {n}" for n in range(40)],
    ],
)
def test_a_program_that_goes_on_has_not_ended_in_its_error(following: list[str]) -> None:
    assert final_error(["acme 1.2 starts", RECORD, *following]) is None


def test_without_times_a_line_after_an_error_is_output() -> None:
    assert final_error(["ERROR the ring of 4 is open", "hello from rank 3"]) is None


@pytest.mark.parametrize(
    "line",
    [
        "acme has lost communication with a remote daemon.",
        "[prep] acme-smi failed with return code 18",
        "2 workers crashed or were killed because of memory pressure",
        "Error from server (NotFound): pod gpu-3 is not there",
        "gpu-7: execv failed: no interpreter",
        "There are not enough places for 16 processes",
    ],
)
def test_a_sentence_that_says_what_failed_is_found(line: str) -> None:
    assert final_sentence(["acme 1.2 starts", line, "one more line"]) == 1


@pytest.mark.parametrize(
    "lines",
    [
        ["UserWarning: could not find a fast path"],
        ["INFO acme: unable to use huge pages"],
        ["W0601 10:01:00.1 1 cache.cc:3] Failed to lock the cache"],
        ["[W601 10:01:00.123 socket.cpp:1] Failed to use IPv6"],
        ["if the port cannot be opened, give another one"],
        ["cannot open the cache, using memory instead"],
        ["failed to save a copy", "training finished"],
        ["failed to save a copy", "step 30 loss 0.2"],
        ["0 tests failed with a timeout"],
        ["+ rm -f /tmp/x || echo cannot remove"],
        ["val_error: 0.031"],
        ["error: 0.031"],
    ],
)
def test_no_failure_is_made_of_a_warning(lines: list[str]) -> None:
    assert final_sentence(["acme 1.2 starts", *lines]) is None
    assert final_error(["acme 1.2 starts", *lines]) is None


@pytest.mark.parametrize(
    "line",
    [
        '> it ends with "acme.net.RingError: peer 3 is gone"',
        "(Actor pid=7) [rank1]: acme.net.RingError: peer 3 is gone",
        "n1:77:101 [3] NCCL WARN Call to connect failed",
        "acme: the process was killed",
    ],
)
def test_an_excerpt_says_what_failed_wherever_it_stands(line: str) -> None:
    assert stated_failure(["acme 1.2 starts", line, "the configuration follows", "ring: 4"]) == 1


@pytest.mark.parametrize(
    "lines",
    [
        ["RingError: peer 3 is gone; another ring is used instead", "ring: 3"],
        ["RingError: peer 3 is gone", "step 3 loss 0.5"],
        ["step 3 loss 0.5", "RingError: peer 3 is gone", "ring: 3"],
        ["n1:77:101 [3] NCCL WARN NET/Plugin: Failed to find ncclNetPlugin_v8 symbol."],
        ["acme_WARN: could not read the CPU's caches"],
        ["RingError: peer 3 is gone", *["ring: 3"] * 400],
        ["RingError: peer 3 is gone", "all tasks done"],
    ],
)
def test_a_failure_after_which_work_goes_on_is_none(lines: list[str]) -> None:
    assert stated_failure(lines) is None


def test_an_exception_says_more_than_a_record_of_an_error() -> None:
    assert stated_failure([RECORD, "RingError: peer 3 is gone", "ring: 4"]) == 1
