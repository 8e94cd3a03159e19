"""Logs of programs whose words are in no table: an error is quoted, and what goes on is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.facts import Severity
from diagnosed_texts import diagnose

WAIT = "Waiting for peers ({n}/4 present)"
CALL = """\
step 10 loss 1.2
Traceback (most recent call last):
  File "/work/main.py", line 54, in main
    run(config)
  File "/opt/env/lib/python3.10/site-packages/acme/worker.py", line 930, in get
    raise value
{error}
"""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[host3] acmecomm: FATAL: peer 7 did not answer within 60 s", "peer 7 did not answer"),
        ("E0601 10:01:00.1 1 net.cc:12] handshake with 10.0.0.4:4242 failed", "handshake with"),
        ("[rank2]:[E601 10:01:00.1 Net.cpp:12] link to rank 3 is broken", "link to rank 3"),
        ("2025-06-01 10:01:00.123: E acme/net.cc:12] no route to task 4", "no route to task 4"),
        ("2025-06-01 10:01:00,123 ERROR acme.net - ring of 4 not closed", "ring of 4 not closed"),
        ('{"level":"error","ts":1,"msg":"pod gpu-7 has no endpoint"}', "pod gpu-7"),
        ("acme-launch: error: node gpu-7 is not reachable", "node gpu-7 is not reachable"),
        ("error: the ranks disagree about the size of the ring", "the ranks disagree"),
    ],
)
def test_the_error_with_which_a_log_ends_is_quoted(tmp_path: Path, line: str, message: str) -> None:
    (finding,) = diagnose(tmp_path, f"starting\n{line}\n")
    assert finding.rule == "LOG012"
    assert finding.summary.startswith("the log ends in an error: ") and message in finding.summary


def test_the_first_of_several_is_quoted(tmp_path: Path) -> None:
    later = "".join(f"ERROR shutdown of stage {n} failed\n" for n in range(3))
    (finding,) = diagnose(tmp_path, f"starting\nERROR lost the ring at rank 3\n{later}")
    assert "lost the ring at rank 3" in finding.summary


@pytest.mark.parametrize(
    "lines",
    [
        ["ERROR upload of the metrics failed", "step 11 loss 1.1", "step 12 loss 1.0"],
        ["ERROR the cache is locked, trying again in 4 s"],
        ["ERROR no plugin for this GPU, falling back to the default"],
        ["training finished", "ERROR the reporter did not get its last answer"],
        ["PermissionError: [Errno 13] Permission denied: '/cache'; another folder is used instead"],
        ["errors: 0, restarts: 0, ERROR=0"],
        ["2025-06-01 10:01:00.123: E cuda_fft.cc:485] Unable to register cuFFT factory: again"],
        ["ERROR_RATE is 0.03 in this epoch"],
    ],
)
def test_an_error_after_which_the_program_goes_on_is_none(tmp_path: Path, lines: list[str]) -> None:
    assert diagnose(tmp_path, "\n".join(["step 9 loss 1.3", "step 10 loss 1.2", *lines, ""])) == []


def test_a_wait_that_a_log_repeats_until_its_end_is_quoted(tmp_path: Path) -> None:
    text = "".join(f"{WAIT.format(n=n)}\n" for n in (1, 2, 3, 3))
    (finding,) = diagnose(tmp_path, text)
    assert finding.rule == "LOG012"
    assert finding.summary.startswith("the log ends in a wait that it repeats: Waiting for peers")


@pytest.mark.parametrize(
    "lines",
    [
        [WAIT.format(n=1), WAIT.format(n=2), WAIT.format(n=3), "all here", "ring built", "start"],
        [WAIT.format(n=1), WAIT.format(n=2), WAIT.format(n=3), "step 1 loss 2.3"],
        [WAIT.format(n=3)],
        ["Waiting for a new checkpoint in /runs/7"] * 5,
    ],
)
def test_a_wait_that_ends_or_is_right_is_none(tmp_path: Path, lines: list[str]) -> None:
    assert diagnose(tmp_path, "\n".join([*lines, ""])) == []


@pytest.mark.parametrize(
    "error",
    [
        "acme.exceptions.AgentDiedError: The agent died unexpectedly before it finished.",
        "acme.core.SyncTimeout: epoch-3 not reached by all workers within 300s",
        "RuntimeError: connection to peer 3 (10.0.0.7:4000) lost",
        "acme.errors.CollectiveMismatch: rank 2 called gather, rank 0 called reduce",
    ],
)
def test_what_befalls_a_library_is_not_the_fault_of_the_line_that_called_it(
    tmp_path: Path, error: str
) -> None:
    (finding,) = diagnose(tmp_path, CALL.format(error=error))
    assert "failed inside acme" in finding.summary and "called at main.py:54" in finding.summary
    assert "fix /work/main.py" not in finding.fix


@pytest.mark.parametrize(
    "error",
    [
        "ValueError: timeout must be a positive number",
        "KeyError: 'lost'",
        "RuntimeError: the shapes (3, 4) and (5, 6) do not fit",
    ],
)
def test_what_a_library_refuses_is_about_what_that_line_passes(tmp_path: Path, error: str) -> None:
    (finding,) = diagnose(tmp_path, CALL.format(error=error))
    message = error.partition(": ")[2]
    assert (
        f"see what /work/main.py:54 passes to acme, or how that is configured: acme says {message!r}"
        in (finding.fix)
    )


LAUNCHER_ERROR = """\
Traceback (most recent call last):
  File "/opt/env/bin/torchrun", line 8, in <module>
    sys.exit(main())
  File "/opt/env/lib/python3.10/site-packages/torch/distributed/run.py", line 762, in main
    run(args)
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: train.py ended
{after}
"""


def test_the_launchers_own_traceback_is_quoted_if_nothing_says_more(tmp_path: Path) -> None:
    (finding,) = diagnose(tmp_path, LAUNCHER_ERROR.format(after="  a line of its message"))
    assert finding.rule == "LOG012" and "ChildFailedError" in finding.summary
    assert not finding.who


@pytest.mark.parametrize("after", ["step 11 loss 1.1", "training finished"])
def test_a_launchers_traceback_after_which_the_job_goes_on_is_none(
    tmp_path: Path, after: str
) -> None:
    assert diagnose(tmp_path, LAUNCHER_ERROR.format(after=after)) == []


def test_a_lost_peer_that_a_logger_wrote_last_is_quoted(tmp_path: Path) -> None:
    text = "WARNING:acme.api:no id was given\n" + CALL.format(
        error="acme.errors.PeerLostError: a peer has gone"
    ).removeprefix("step 10 loss 1.2\n")
    findings = diagnose(tmp_path, text)
    assert len(findings) == 1 and "PeerLostError" in f"{findings[0].summary} {findings[0].evidence}"


OF_USERS_LINE = """\
step 10 loss 1.2
Traceback (most recent call last):
  File "/work/main.py", line 54, in <module>
    batch.to(device)
{error}
"""


@pytest.mark.parametrize(
    "error",
    [
        "RuntimeError: CUDA error: the copy engine of this device has stopped",
        "torch.AcceleratorError: HIP error: no such queue",
        "RuntimeError: cuDNN error: CUDNN_STATUS_SOMETHING_NEW",
        "RuntimeError: NPU function error: call aclInit failed",
        "jaxlib.XlaRuntimeError: RET_CHECK failure (acme/topology.cc:12) devices == 8",
    ],
)
def test_what_a_device_reports_of_itself_is_no_mistake_of_the_line(
    tmp_path: Path, error: str
) -> None:
    (finding,) = diagnose(tmp_path, OF_USERS_LINE.format(error=error))
    assert "fix /work/main.py" not in finding.fix and "main.py:54" in finding.summary


@pytest.mark.parametrize(
    "error",
    [
        "RuntimeError: expected a tensor of 4 elements",
        "ValueError: CUDA error handling is not configured",
        "RuntimeError: CUDA error: index out of bounds",
    ],
)
def test_a_mistake_of_the_line_remains_one(tmp_path: Path, error: str) -> None:
    (finding,) = diagnose(tmp_path, OF_USERS_LINE.format(error=error))
    assert "/work/main.py:54" in finding.fix


REASON = "card 7 of this host is held by another program"
ABOUT_TO_END = f"starting\n2025-06-01 10:01:00,123 ERROR acme.net - {REASON}\n"


@pytest.mark.parametrize(
    "end",
    [
        "terminate called after throwing an instance of 'acme::Error'\n  what():  call 6 failed\n",
        CALL.format(error="acme.PeerLostError: call 6 failed").partition("\n")[2],
        "srun: error: h7: task 0: Exited with exit code 1\n",
    ],
)
def test_an_end_that_says_nothing_is_explained_by_the_error_before_it(
    tmp_path: Path, end: str
) -> None:
    (finding,) = diagnose(tmp_path, ABOUT_TO_END + end)
    assert REASON in finding.summary


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[h1] acme WARN: Call to acme_qp failed with 110\n[h1] acme INFO a.cc:3 -> 2\n",
            "acme_qp",
        ),
        ("90s  Warning  FailedMount  pod/tr-1  secret s3-key was not found\n", "secret s3-key"),
        ("INFO pod tr-worker-1 exited with code 3\n", "tr-worker-1 exited with code 3"),
        ("[W601 10:00:00.1 a.cpp:3] ring: missing ranks: 6\n", "missing ranks: 6"),
    ],
)
def test_a_log_that_ends_in_a_warning_of_a_failure_is_no_error(
    tmp_path: Path, text: str, words: str
) -> None:
    (finding,) = diagnose(tmp_path, f"starting\n{text}")
    assert (finding.rule, finding.severity) == ("LOG012", Severity.WARNING)
    assert words in finding.summary


@pytest.mark.parametrize(
    "text",
    [
        "90s  Warning  FailedMount  pod/tr-1  secret s3-key was not found\n9s  Normal  Started  "
        "pod/tr-1  Started\n",
        "W0601 10:00:00.1 1 a.cc:3] connection to 3 failed\n",
        "[W601 10:00:00.1 a.cpp:3] connection closed by peer 3\n",
        "W0601 10:00:00.1 1 a.cc:3] Invalid size of cache 0; using 1\n",
        "waiting for members (timeout=0:30:00)\n",
    ],
)
def test_a_warning_after_which_it_may_go_on_is_left_alone(tmp_path: Path, text: str) -> None:
    assert diagnose(tmp_path, f"starting\n{text}") == []
