"""`run --warm`: workers that are forked from a process which has imported for all of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

RUN = [sys.executable, "-m", "allaboard", "run", "--grace", "2"]
FRAMEWORK = """
import os, time
BY_SCRIPT = os.environ.get("BY_SCRIPT")
RANK = os.environ.get("RANK")
os.environ["BY_LIBRARY"] = "1"
print("imported in", os.getpid(), flush=True)
time.sleep(float(os.environ.get("IMPORT_S", "0")))
"""
SCRIPT = """
import json, os, sys
os.environ["BY_SCRIPT"] = "x"
import jax
import neighbour
import numpy
from pathlib import Path
round_, rank = os.environ["ALLABOARD_ROUND"], os.environ["RANK"]
CHANGES = ("ALLABOARD_PID", "ALLABOARD_WARM", "ALLABOARD_STDOUT", "ALLABOARD_JOB", "ALLABOARD_BOX",
           "MASTER_PORT", "JAX_COORDINATOR_ADDRESS", "TF_CONFIG")
state = dict(
    argv=sys.argv, orig_argv=sys.orig_argv, path=sys.path, main=sorted(sys.modules["__main__"].__dict__),
    file=__file__, code=sys._getframe().f_code.co_filename, name=__name__, package=__package__,
    environment={k: v for k, v in os.environ.items() if k not in CHANGES},
    by_script=jax.BY_SCRIPT, is_main=sys.modules["__main__"].__dict__ is globals(),
    buffered=sys.stdout.line_buffering, stdin=sys.stdin.read(), folder=os.getcwd(),
    own_pid=os.environ["ALLABOARD_PID"] == str(os.getpid()), session=os.getsid(0) == os.getpid(),
    descriptors=len(os.listdir("/proc/self/fd")),
    shown=Path("/proc/self/cmdline").read_bytes().rstrip(b"\\0").decode().split("\\0"),
)
Path(sys.argv[1], round_ + "-" + rank).write_text(json.dumps([jax.RANK, state, numpy.random.rand()]))
if round_ == "0" and rank == "1" and "fail" in sys.argv:
    raise ValueError("of the script")
"""


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    package = tmp_path / "site-packages/jax"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(FRAMEWORK)
    (tmp_path / "neighbour.py").write_text("")
    (tmp_path / "train.py").write_text(SCRIPT)
    before = {n: v for n, v in os.environ.items() if n != "OMP_NUM_THREADS"}
    return {**before, "PYTHONPATH": str(tmp_path / "site-packages"), **more}


def run(tmp_path: Path, out: str, *words: str, **more: str) -> tuple[int, str]:
    (tmp_path / out).mkdir()
    done = subprocess.run(
        [*RUN, "--run-dir", str(tmp_path / f"run-{out}"), *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(tmp_path, **more),
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


def told(tmp_path: Path, out: str, round_: int = 0) -> list[Any]:
    return [json.loads((tmp_path / out / f"{round_}-{rank}").read_text()) for rank in (0, 1)]


@pytest.mark.parametrize("way", [["./train.py"], ["-m", "train"]])
def test_a_forked_worker_finds_everything_as_a_new_python_has_it(
    tmp_path: Path, way: list[str]
) -> None:
    assert run(tmp_path, "run_anew", "-n", "2", *way, "run_anew")[0] == 0
    code, output = run(tmp_path, "run_fork", "-n", "2", "--warm", *way, "run_fork")
    assert code == 0
    assert output.count("imported in") == 1 and "[0] imported in" in output
    cold, warm = told(tmp_path, "run_anew"), told(tmp_path, "run_fork")
    assert [rank for rank, _, _ in cold] == ["0", "1"] and [r for r, _, _ in warm] == [None, None]
    as_text = json.dumps([state for _, state, _ in warm]).replace("run_fork", "run_anew")
    for forked, (_, started, _) in zip(json.loads(as_text), cold, strict=True):
        assert set(forked["environment"].items()) ^ set(started["environment"].items()) == set()
        assert {n: v for n, v in forked.items() if started[n] != v} == {}
    assert warm[0][2] != warm[1][2], "each has random numbers of its own"


def test_the_next_round_is_forked_from_the_same_process(tmp_path: Path) -> None:
    words = ("-n", "2", "--warm", "--on-failure", "restart", "--backoff", "0")
    code, output = run(tmp_path, "out", *words, "train.py", "out", "fail")
    assert code == 0 and output.count("imported in") == 1
    assert len(told(tmp_path, "out", 1)) == 2
    trace = output[output.index("Traceback (most recent call last)") :]
    assert "ValueError: of the script" in trace and "fork_server" not in output
    assert "main_module" not in output


def test_imports_that_start_threads_are_left_to_the_workers(tmp_path: Path) -> None:
    environment(tmp_path)
    package = tmp_path / "site-packages/jax/__init__.py"
    text = (
        FRAMEWORK
        + "import threading\nthreading.Thread(target=time.sleep, args=(3,), daemon=True).start()\n"
    )
    (tmp_path / "site-packages/jax2").mkdir()
    (tmp_path / "site-packages/jax2/__init__.py").write_text(text)
    (tmp_path / "plain.py").write_text("import jax2\n")
    assert package.exists()
    code, output = run(tmp_path, "out", "-n", "2", "--warm", "plain.py")
    assert code == 0 and output.count("imported in") == 3
    assert "--warm: its imports have started 1 thread of their own" in output
    assert "the workers start in the ordinary way" in output


def test_a_process_that_is_killed_while_it_imports_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "site-packages/dying").mkdir(parents=True)
    (tmp_path / "site-packages/dying/__init__.py").write_text(
        "import os, sys\nif 'fork_server' in ''.join(sys.argv):\n    os.kill(os.getpid(), 9)\n"
    )
    (tmp_path / "plain.py").write_text("import dying\nprint('ran')\n")
    code, output = run(tmp_path, "out", "-n", "3", "--warm", "plain.py")
    assert code == 0 and output.count("ran") == 3
    assert "--warm: the process that imports for all has ended" in output


def test_each_of_many_has_its_own_exit_code_and_none_is_lost(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("import os\nos._exit(20 + int(os.environ['RANK']))\n")
    code, _ = run(tmp_path, "out", "-n", "12", "--warm", "plain.py")
    report = json.loads((tmp_path / "run-out/report.json").read_text())
    codes = [worker["exit_code"] for worker in report["workers"]]
    assert code == 1 and codes[0] == 20 and set(codes) - {None} <= set(range(20, 32))


def test_ctrl_c_while_it_imports_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*RUN, "-n", "2", "--warm", "train.py", "out"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        env=environment(tmp_path, IMPORT_S="30"),
    )
    assert process.stdout is not None
    line = ""
    for line in process.stdout:
        if "imported in" in line:
            break
    server = int(line.split()[-1])
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read()
    process.stdout.close()
    assert process.wait(20) == 130 and "Traceback" not in rest
    assert time.monotonic() - started < 10
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--ps", "1", "-n", "2", "train.py"], "--warm is for jobs without parameter servers"),
        (["-n", "2", "--", "python", "train.py"], "--warm needs a Python script or -m MODULE"),
        (
            ["-n", "2", "--on-failure", "restart", "--standby", "2", "train.py"],
            "leave out --standby",
        ),
    ],
)
def test_where_it_does_not_fit_is_said(tmp_path: Path, words: list[str], why: str) -> None:
    code, output = run(tmp_path, "out", "--warm", *words)
    assert code == 2 and why in output
