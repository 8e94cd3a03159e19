"""`allaboard run --on-failure restart` as a person meets it, on scripts without a framework."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from allaboard.facts import Report
from allaboard.report.json_schema import json_schema_of

RUN = [sys.executable, "-m", "allaboard", "run"]
PS = ["--ps", "1", "--on-failure", "restart"]
JOINED = ["--on-failure", "restart", "--env"]
TWO = 'TF_CONFIG={"cluster":{"worker":["a:1","b:1"]},"task":{"type":"worker","index":0}}'
SERVED = 'TF_CONFIG={"cluster":{"worker":["a:1"],"ps":["b:1"]},"task":{"type":"worker","index":0}}'
HEAD = (
    "import os, sys, time, signal\n"
    "round_, rank = int(os.environ['ALLABOARD_ROUND']), os.environ['RANK']\n"
    "print('round', round_, 'port', os.environ['MASTER_PORT'], 'pid', os.getpid(), flush=True)\n"
)
# The other worker is ended once one has failed: what it is to have done before is waited for.
BOTH_ARE_HERE = (
    "here = os.path.dirname(os.path.abspath(__file__)) + f'/here-{round_}-'\n"
    "open(here + rank, 'w').close()\n"
    "until = time.monotonic() + 30\n"
    "while not (os.path.exists(here + '0') and os.path.exists(here + '1')):\n"
    "    assert time.monotonic() < until, 'the other worker did not come'\n"
    "    time.sleep(0.01)\n"
)


def run(tmp_path: Path, script: str, *options: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, report and output of two workers with ``script``, restarts allowed."""
    file = tmp_path / "train.py"
    file.write_text(HEAD + script)
    command = [*RUN, "-n", "2", "--run-dir", str(tmp_path / "run"), "--grace", "2"]
    command += ["--on-failure", "restart", "--backoff", "0.1", *options, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    report = json.loads((tmp_path / "run/report.json").read_text())
    jsonschema.validate(report, json_schema_of(Report))
    return done.returncode, report, done.stdout + done.stderr


def ports(output: str) -> list[str]:
    return [line.split()[4] for line in output.splitlines() if " port " in line]


def test_all_workers_start_again_with_new_ports_and_a_new_round(tmp_path: Path) -> None:
    code, report, output = run(
        tmp_path,
        "print(os.environ['TORCHELASTIC_RESTART_COUNT'], os.environ['TF_CONFIG'], flush=True)\n"
        + BOTH_ARE_HERE
        + "if rank == '1' and round_ == 0: os.kill(os.getpid(), 9)\n"
        "if round_ == 0: time.sleep(300)",
    )
    assert code == 0, output
    assert (report["outcome"], report["restarts"]) == ("completed", 1)
    assert len(set(ports(output))) == 2
    first, second = report["rounds"]
    assert first["cause"]["what"] == "was killed by SIGKILL" and first["again"]
    assert first["decision"] == "worker 1 was killed by SIGKILL; restart 1 of 3"
    assert second["outcome"] == "completed"
    assert "round 0: worker 1 was killed by SIGKILL" in output
    log = (tmp_path / "run/logs/worker-0.log").read_text()
    assert log.index("round 0 port") < log.index("--- allaboard: round 1 ---")
    assert log.index("--- allaboard: round 1 ---") < log.index("round 1 port")
    journal = (tmp_path / "run/journal.jsonl").read_text()
    kinds = [json.loads(line)["kind"] for line in journal.splitlines()]
    assert kinds.count("round") == 2


def test_nothing_of_a_round_is_left_when_the_next_one_starts(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code, _, output = run(
        tmp_path,
        f"note = open({str(pids)!r}, 'a')\n" + BOTH_ARE_HERE + "if round_ == 0:\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    if os.fork() == 0: os.setsid()\n"
        "    note.write(f'{os.getpid()}\\n'); note.flush()\n"
        "    if rank == '1': time.sleep(0.5); os.kill(os.getpid(), 9)\n"
        "    time.sleep(300)\n"
        f"left = [p for p in open({str(pids)!r}).read().split() if os.path.exists('/proc/' + p)]\n"
        "print('left', left)",
        "--grace",
        "0.5",
    )
    assert code == 0, output
    assert output.count("left []") == 2
    assert len(pids.read_text().split()) >= 3


def test_an_exception_that_comes_again_is_not_met_a_third_time(tmp_path: Path) -> None:
    code, report, output = run(
        tmp_path, "if rank == '1': raise ValueError('label 11')\ntime.sleep(99)"
    )
    assert (code, report["outcome"], report["restarts"]) == (1, "failed", 1)
    assert "as in round 0: it would fail in every round" in report["rounds"][1]["decision"]
    assert "not started again: worker 1 raised ValueError" in output
    assert [f["rule"] for f in report["findings"]] == ["EXIT002", "EXIT002"]


def test_a_loop_without_progress_ends(tmp_path: Path) -> None:
    code, report, output = run(
        tmp_path, "if rank == '0': sys.exit(7)\ntime.sleep(99)", "--max-restarts", "20"
    )
    assert (code, report["restarts"]) == (1, 2)
    assert "a loop without progress: none of the last 3 rounds got to a step" in output


def test_restarts_are_counted(tmp_path: Path) -> None:
    code, report, output = run(
        tmp_path, "if rank == '0': os.kill(os.getpid(), 9)\ntime.sleep(99)", "--max-restarts", "1"
    )
    assert (code, report["restarts"]) == (1, 1)
    assert "not started again: 1 restart used up (--max-restarts 1)" in output


@pytest.mark.parametrize("pause", ["0", "30"])
def test_ctrl_c_starts_nothing_again(tmp_path: Path, pause: str) -> None:
    """While they train, and in the pause between two rounds."""
    file = tmp_path / "train.py"
    crash = "if rank == '1': os.kill(os.getpid(), 9)\n" if pause != "0" else ""
    file.write_text(HEAD + crash + "time.sleep(300)")
    output = tmp_path / "output"
    command = [*RUN, "-n", "2", "--run-dir", str(tmp_path / "run"), "--grace", "1"]
    command += ["--on-failure", "restart", "--backoff", pause, str(file)]
    with output.open("wb") as sink:
        process = subprocess.Popen(
            command,
            stdout=sink,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        awaited = b"round 1 starts in 30 s" if pause != "0" else b"[1] round 0"
        deadline = time.monotonic() + 20
        while awaited not in output.read_bytes() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    text = output.read_text()
    assert "round 1 port" not in text
    report = json.loads((tmp_path / "run/report.json").read_text())
    assert (report["outcome"], report["rounds"][-1]["again"]) == ("interrupted", False)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--on-failure", "restart", "--max-restarts", "-1"], 'expects a number from 0 to 1000, got "-1"'),
        (["--on-failure", "restart", "--max-restarts", "many"], 'a number from 0 to 1000, got "many"'),
        (["--on-failure", "restart", "--backoff", "-2"], 'expects a number of seconds, 0 or more, got "-2"'),
        (["--on-failure", "restart", "--observe"], "--observe neither ends nor starts anything"),
        (["--on-failure", "again"], '--on-failure expects stop or restart, got "again"'),
        (["--max-restarts", "3"], "--max-restarts needs --on-failure restart"),
        (["--stopped-after", "3"], "--stopped-after needs --on-failure restart"),
        (["--ps-snapshot", "5"], "--ps-snapshot 5 needs --ps P"),
        (["--ps", "1", "--ps-snapshot", "5"], "--ps-snapshot 5 needs --on-failure restart"),
        ([*PS, "--ps-snapshot", "0"], 'expects a number of seconds from 0.1 to 86400, got "0"'),
        ([*PS, "--ps-snapshot", "-1"], 'number of seconds from 0.1 to 86400, got "-1"'),
        ([*PS, "--ps-snapshot", "x"], '--ps-snapshot expects a number of seconds from 0.1 to 86400, got "x"'),
        ([*PS, "--ps-snapshot", "nan"], 'number of seconds from 0.1 to 86400, got "nan"'),
        (["--ps-standby", "on"], "--ps-standby on needs --ps P"),
        (["--standby", "1"], "--standby needs --on-failure restart"),
        ([*PS, "--standby", "1"], "with --ps, --ps-standby on keeps a process ready"),
        (["--on-failure", "restart", "--standby", "3"], "only 2 workers start here, and each can be"),
        (["--on-failure", "restart", "--standby", "0"], "--standby expects a number from 1 to 4096"),
        ([*JOINED, TWO, "--ps-snapshot", "5"], "parameter servers, and TF_CONFIG lists no ps; leave"),
        ([*JOINED, TWO, "--ps-standby", "on"], "parameter servers, and TF_CONFIG lists no ps; leave"),
        ([*JOINED, SERVED, "--ps-snapshot", "0"], 'expects a number of seconds from 0.1 to 86400, got "0"'),
        (["--ps", "1", "--ps-standby", "off"], "--ps-standby off needs --on-failure restart"),
        ([*PS, "--ps-standby", "2"], '--ps-standby expects on or off, got "2"'),
        (
            ["--on-failure", "restart", "--env", "MASTER_ADDR=node0", "--env", "MASTER_PORT=29500",
             "--env", "RANK=0", "--env", "WORLD_SIZE=2"],
            "make a secret, openssl rand -hex 32 > job.secret",
        ),
        (
            ["--on-failure", "restart", "--env", "MASTER_ADDR=node0", "--env", "MASTER_PORT=29500",
             "--env", "RANK=0", "--env", "WORLD_SIZE=2", "--env", "TORCHELASTIC_USE_AGENT_STORE=True"],
            "try: torchrun --max-restarts 3",
        ),
    ],
)  # fmt: skip
def test_bad_input(words: list[str], says: str) -> None:
    size = [] if "--env" in words else ["-n", "2"]
    command = [*RUN, *size, *words, __file__]
    secret = {**os.environ, "ALLABOARD_SECRET": "known"} if "TF_CONFIG" in str(words) else None
    done = subprocess.run(
        command, env=secret, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 2
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def run_tasks(tmp_path: Path, script: str) -> tuple[int, dict[str, Any], str]:
    """As `run`, with a worker and a parameter server that is no TensorFlow."""
    file = tmp_path / "train.py"
    file.write_text(
        "import json, os, sys, time\nfrom pathlib import Path\n"
        "job = json.loads(os.environ['TF_CONFIG'])['task']['type']\n"
        f"here = Path({str(tmp_path)!r})\n" + script
    )
    command = [*RUN, "--ps", "1", "-n", "1", "--ps-server", "script", "--grace", "2"]
    command += ["--run-dir", str(tmp_path / "run"), "--on-failure", "restart", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    report = json.loads((tmp_path / "run/report.json").read_text())
    jsonschema.validate(report, json_schema_of(Report))
    return done.returncode, report, done.stdout + done.stderr


def test_a_killed_server_comes_back_alone_at_its_own_address(tmp_path: Path) -> None:
    code, report, output = run_tasks(
        tmp_path,
        "(here / f'{job}-{os.getpid()}').write_text(os.environ['TF_CONFIG'])\n"
        "while job == 'worker' and len(list(here.glob('ps-*'))) < 2: time.sleep(0.05)\n"
        "if job == 'ps' and len(list(here.glob('ps-*'))) < 2: os.kill(os.getpid(), 9)\n"
        "if job == 'ps': time.sleep(300)\n",
    )
    assert (code, report["restarts"], len(report["returns"])) == (0, 0, 1), output
    first, second = (f.read_text() for f in tmp_path.glob("ps-*"))
    assert first == second
    assert len(list(tmp_path.glob("worker-*"))) == 1
    assert "ps 0 starts again: ps 0 was killed by SIGKILL; restart 1 of 3" in output
    assert "ps 0 came back: ps 0 was killed by SIGKILL" in output
    assert "--- allaboard: started again ---" in (tmp_path / "run/logs/ps-0.log").read_text()


def test_a_server_that_raises_the_same_again_ends_the_job(tmp_path: Path) -> None:
    code, report, output = run_tasks(
        tmp_path, "if job == 'ps': raise FileNotFoundError('/data/vocabulary')\ntime.sleep(300)\n"
    )
    assert (code, report["restarts"], len(report["returns"])) == (1, 0, 1), output
    assert "not started again: ps 0 raised FileNotFoundError at train.py:5, as the time" in output
