"""Ends that are told in an unusual place or form: heard, quoted by their cause, with a step to take."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosed_texts import diagnose


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("RuntimeError: Deadline exceeded: Failed to connect to grpc://192.0.2.9:8470.\n", "8470"),
        (
            "(acme.v1.create) INVALID_ARGUMENT: the pool is not there. Please try again.\n",
            "INVALID",
        ),
        ("signal (11): Segmentation fault\nin expression starting on line 2\n", "SIGSEGV"),
        ("acme.core.RingError(RuntimeError): ring of 4 not closed\n", "ring of 4"),
        ("KilledWorker: ('sum-1', <Worker 'tcp://192.0.2.4:4444', name: 3>)\n", "KilledWorker"),
        ("Exception in device=XPU:3: no partner at the ring\n", "no partner at the ring"),
        (
            "e: AcmeError: the compiler failed:\n\n  value 'a9' is not defined\n",
            "'a9' is not defined",
        ),
    ],
)
def test_it_is_heard(tmp_path: Path, text: str, words: str) -> None:
    (finding,) = diagnose(tmp_path, f"starting\n{text}")
    assert words in " ".join([finding.summary, *(e.observed for e in finding.evidence)])


@pytest.mark.parametrize(
    "line",
    [
        "ConnectionError: no route, retrying in 4 s",
        "acme: the service was busy; it will try again",
        "TrainLoss: 0.31",
        "Exceptions in the last hour: 0",
        "signal handlers (11) are set",
    ],
)
def test_what_is_no_end_is_left(tmp_path: Path, line: str) -> None:
    assert not diagnose(tmp_path, f"step 1 loss 2.0\n{line}\nstep 2 loss 1.9\n")


@pytest.mark.parametrize("head", ["Traceback (most recent call last):\n", "Traceback", "Traceb"])
def test_a_traceback_that_has_only_begun_is_heard(tmp_path: Path, head: str) -> None:
    text = f"-- Process 5 terminated with the following error:\n{head}"
    (finding,) = diagnose(tmp_path, f"step 1 loss 2.0\n{text}")
    assert "spawned process 5 failed" in finding.summary and "whole log" in finding.fix


def test_what_was_reported_before_it_is_quoted(tmp_path: Path) -> None:
    text = 'Exception in worker 3: partner is gone\nTraceback (most recent call last):\n  File "/us'
    (finding,) = diagnose(tmp_path, f"starting\n{text}")
    assert "a process failed after Exception in worker 3: partner is gone" in finding.summary


def test_a_file_called_trace_is_no_traceback(tmp_path: Path) -> None:
    assert not diagnose(tmp_path, "step 1 loss 2.0\nwrote the Trace\n")


def test_the_child_s_own_words_count_and_not_its_exit(tmp_path: Path) -> None:
    text = (
        "Unit 3 lost. Exit status: 255. Last bytes of its output:\n"
        "log: WARN parsing error in column 23\n"
        "AcmeError:the table must be smaller\n\n"
        "Unit exited with a non-zero exit code 255.\n"
    )
    (finding,) = diagnose(tmp_path, text)
    assert "the table must be smaller" in finding.summary


def test_a_command_that_failed_is_explained_by_what_it_printed(tmp_path: Path) -> None:
    text = (
        'error: unable to reach the unit: container not found ("loop")\n'
        "Traceback (most recent call last):\n"
        '  File "/work/start.py", line 9, in main\n'
        "    subprocess.check_call(cmd)\n"
        '  File "/usr/lib/python3.11/subprocess.py", line 413, in check_call\n'
        "    raise CalledProcessError(retcode, cmd)\n"
        "subprocess.CalledProcessError: Command '['copy', 'a']' returned non-zero exit status 1.\n"
    )
    (finding,) = diagnose(tmp_path, text)
    assert 'container not found ("loop")' in finding.summary and "kubectl" in finding.fix


def test_the_message_s_next_lines_may_say_what_to_do(tmp_path: Path) -> None:
    text = "ERROR the units of an earlier run still work\n  Solution: wait 10 s and start again\n"
    (finding,) = diagnose(tmp_path, f"starting\n{text}")
    assert "Solution: wait 10 s" in finding.fix


def test_a_log_that_another_program_prints_is_read_to_its_last_error(tmp_path: Path) -> None:
    text = (
        "slurmstepd: error: acme: container start failed with error code: 1\n"
        "slurmstepd: error: acme: printing unit log file:\n"
        "slurmstepd: error: acme:   /usr/bin/unit: line 4: HOME: unbound variable, cannot be read\n"
        "slurmstepd: error: acme:   unit-cli: mount failed: /proc/1/root: permission denied\n"
        "slurmstepd: error: acme: couldn't start container\n"
        "srun: error: n1: task 0: Exited with exit code 1\n"
    )
    (finding,) = diagnose(tmp_path, text)
    assert "unit-cli: mount failed" in finding.summary


def test_what_is_said_alike_of_several_members_is_one_finding(tmp_path: Path) -> None:
    text = "".join(
        "[W tensorpipe_agent.cpp:726] RPC agent for 0 encountered error when reading incoming request from "
        f"{n}: sendmsg: Broken pipe (this error originated at tensorpipe/common/socket.h:105)\n"
        for n in (27, 32, 5)
    )
    (finding,) = diagnose(tmp_path, text)
    assert finding.summary.startswith("27, ") and finding.summary.endswith("(the same for 32, 5)")


def test_the_command_that_shows_more_is_the_next_step(tmp_path: Path) -> None:
    text = "Job 1 failed. For more details, run: acme logs --all 1\nFailure reason: driver failed\n"
    (finding,) = diagnose(tmp_path, text)
    assert "acme logs --all 1" in finding.fix
