"""The environment of a process as its program has set it, read from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from allaboard.hosts import proc, rank_processes
from allaboard.hosts.current_environment import current_environment

SETS = """import os, sys
os.environ["TF_CONFIG"] = '{"task": {"type": "ps", "index": 1}}'
os.environ["RANK"] = "3"
os.environ["LONG"] = "x" * 50_000
os.environ["MY_API_TOKEN"] = "not-for-the-world"
os.environ.pop("WAS_SET", None)
for n in range(500):
    os.environ[f"ONE_OF_MANY_{n}"] = str(n)
print("up", flush=True)
sys.stdin.read()
"""


@contextmanager
def running(code: str, **environment: str) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={"PATH": os.environ["PATH"], **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None and process.stdout.readline() == "up\n"
        yield process.pid
        process.kill()


def test_what_the_program_has_set_is_read() -> None:
    with running(SETS, WAS_SET="1", KEPT="2") as pid:
        now = current_environment(pid)
        assert "RANK" not in proc.initial_environment(pid)
        assert now["RANK"] == "3" and now["KEPT"] == "2" and "WAS_SET" not in now
        assert now["LONG"] == "x" * 50_000 and now["ONE_OF_MANY_499"] == "499"
        relevant = rank_processes.relevant_environment(pid)
        assert relevant["TF_CONFIG"] == '{"task": {"type": "ps", "index": 1}}'
        assert "MY_API_TOKEN" not in relevant


def test_a_process_that_sets_nothing_has_its_initial_environment() -> None:
    with running(
        "import sys; print('up', flush=True); sys.stdin.read()", LC_ALL="C.UTF-8", B=""
    ) as pid:
        assert current_environment(pid) == proc.initial_environment(pid)


def test_a_process_that_is_no_python_is_read_too() -> None:
    # The shell speaks once its own exec is over, and execs nothing more: in an exec there is no environment.
    code = ["sh", "-c", "echo up; read line"]
    with subprocess.Popen(
        code, env={"A": "1"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"up\n"
            assert current_environment(process.pid)["A"] == "1"
        finally:
            process.kill()


def test_a_process_that_has_gone_has_none() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
        assert current_environment(process.pid) == {}
