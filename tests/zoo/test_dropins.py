"""The drop-ins on real frameworks: a start that is well, and RollCallError on every rank where it is not."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import allaboard
from allaboard.launch.port_reservation import reserve_ports
from bedded import need
from free_ports import free_port
from multihost_drills.contract import MEETING_PORT
from multihost_drills.run_host_drill import CLUSTER
from multihost_drills.run_host_drill import described as on_host
from testbed import Bed
from testbed.firewall import Block

pytestmark = pytest.mark.zoo
JOBS = Path(__file__).parent / "jobs"
BY_RANK = (sys.executable, str(JOBS / "dropin_torch.py"), "--by-rank")
"""The job that hands rank and world size over in the arguments, as file:// and tcp:// want it."""
LATE = 3.0
"""Seconds beyond its timeout that an answer may take here, where many tests share two cores."""


def described(framework: str, rank: int, size: int, ports: list[int]) -> dict[str, str]:
    if framework == "tensorflow":
        workers = [f"127.0.0.1:{p}" for p in ports]
        task = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
        return {"TF_CONFIG": json.dumps(task)}
    if framework == "jax":
        return {
            "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{ports[0]}",
            "JAX_NUM_PROCESSES": str(size),
            "JAX_PROCESS_ID": str(rank),
        }
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(ports[0])}
    return {"RANK": str(rank), "WORLD_SIZE": str(size), **place}


class Said:
    """How one rank ended."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        out, self.err = process.communicate(timeout=120)
        self.code = process.returncode
        self.words = out.split()

    @property
    def rules(self) -> set[str]:
        assert self.words[0] == "RollCallError", f"{self.words}\n{self.err[-3000:]}"
        return set(self.words[1].split(","))

    @property
    def seconds(self) -> float:
        return float(self.words[-1])


def start(
    framework: str,
    ranks: list[int],
    size: int,
    argument: object,
    change: Callable[[int, dict[str, str]], dict[str, str]] = lambda rank, told: told,
    ports: list[int] | None = None,
    command: tuple[str, ...] = (),
) -> list[Said]:
    held = [] if ports else reserve_ports(size)
    ports = ports or [s.getsockname()[1] for s in held]
    for each in held:
        each.close()
    running = []
    for rank in ranks:
        told = change(rank, described(framework, rank, size, ports))
        words = command or (sys.executable, str(JOBS / f"dropin_{framework}.py"))
        running.append(
            subprocess.Popen(
                [*words, json.dumps(argument)],
                env={**os.environ, "OMP_NUM_THREADS": "1", **told},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    return [Said(p) for p in running]


@pytest.mark.parametrize("framework", ["torch", "tensorflow", "jax"])
def test_all_here(framework: str) -> None:
    argument = {"timeout": 60} if framework == "torch" else 60
    found = start(framework, [0, 1], 2, argument)
    assert [(s.code, s.words[:2]) for s in found] == [
        (0, [{"torch": "sum", "tensorflow": "replicas", "jax": "processes"}[framework], "2"])
    ] * 2, "\n".join(s.err[-3000:] for s in found)
    assert "all 2 ready" in found[0].err and "ready after" not in found[1].err


@pytest.mark.parametrize(
    ("framework", "here"),
    [
        ("torch", 1),
        ("jax", 0),
        pytest.param("jax", 1, marks=pytest.mark.long),
        ("tensorflow", 1),
        pytest.param("tensorflow", 0, marks=pytest.mark.long),
    ],
)
def test_one_is_missing(framework: str, here: int) -> None:
    (said,) = start(framework, [here], 2, {"timeout": 4} if framework == "torch" else 4)
    assert said.code == 7 and said.rules == ({"JOIN001"} if here == 0 else {"NET002"})
    if framework != "tensorflow":  # whose import is part of the call there
        assert 4.0 <= said.seconds < 4.0 + LATE


def test_every_rank_is_told_who_is_missing() -> None:
    found = start("torch", [0, 2], 3, {"timeout": 4})
    assert [s.rules for s in found] == [{"JOIN001"}] * 2
    assert all("rank 1 has not joined" in s.err for s in found)


def test_two_of_one_rank_are_told_before_the_timeout() -> None:
    found = start("torch", [0, 1, 1], 3, {"timeout": 30})
    assert [s.rules for s in found] == [{"JOIN005"}] * 3
    assert max(s.seconds for s in found) < 15


def test_a_silent_listener_on_the_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = start("torch", [0, 1], 2, {"timeout": 6}, ports=[port])
    assert [s.rules for s in found] == [{"NET005"}] * 2
    assert max(s.seconds for s in found) < 6 + LATE


def test_tcp_in_the_arguments_wins_over_the_environment() -> None:
    argument = {"timeout": 60, "init_method": f"tcp://127.0.0.1:{free_port()}"}

    def without_port(rank: int, told: dict[str, str]) -> dict[str, str]:
        return {**told, "MASTER_PORT": "1"}

    script = (
        "import json, os, sys, allaboard, torch.distributed as dist\n"
        "from datetime import timedelta\n"
        "words = json.loads(sys.argv[1]); seconds = timedelta(seconds=words.pop('timeout'))\n"
        "rank = int(os.environ['RANK'])\n"
        "allaboard.init_process_group('gloo', timeout=seconds, rank=rank, world_size=2, **words)\n"
        "dist.barrier(); print('through', rank); dist.destroy_process_group()\n"
    )
    command = (sys.executable, "-c", script)
    found = start("torch", [0, 1], 2, argument, change=without_port, command=command)
    assert [s.words for s in found] == [["through", "0"], ["through", "1"]], found[0].err


def test_a_file_whose_folder_is_not_there(tmp_path: Path) -> None:
    argument = {"timeout": 8, "init_method": f"file://{tmp_path}/none/meet"}
    found = start("torch", [0, 1], 2, argument, change=lambda rank, told: told, command=BY_RANK)
    assert all(s.rules & {"NET013", "NET014"} for s in found), [s.words for s in found]
    assert max(s.seconds for s in found) < 8 + LATE


def test_a_file_that_works(tmp_path: Path) -> None:
    argument = {"timeout": 60, "init_method": f"file://{tmp_path}/meet"}
    found = start("torch", [0, 1], 2, argument, command=BY_RANK)
    assert [s.words[:2] for s in found] == [["sum", "2"]] * 2, found[0].err


def test_under_allaboard_run_it_does_nothing_twice(tmp_path: Path) -> None:
    words = ["run", "-n", "2", "--run-dir", str(tmp_path), str(JOBS / "dropin_torch.py")]
    done = subprocess.run(
        [sys.executable, "-m", "allaboard", *words], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(" ready after ") == 1 and done.stdout.count("sum 2") == 2


def test_the_roll_call_alone() -> None:
    script = "import allaboard; r = allaboard.roll_call(timeout=30); print(r.rank, r.size, r.job)"
    found = start("torch", [0, 1, 2], 3, 0, command=(sys.executable, "-c", script))
    assert [s.words for s in found] == [[str(i), "3", "worker"] for i in range(3)], found[0].err


def test_a_call_that_never_comes_back_is_ended() -> None:
    """The framework's own call is stood in for by a sleep: what it does, nothing can interrupt."""
    script = (
        "import os, time; from allaboard.dropin.joining import joining\n"
        "from allaboard.preflight.task import task_declaration, task_of_environment\n"
        "with joining(task_declaration(task_of_environment(os.environ)), 2.0): time.sleep(100)\n"
    )
    began = time.monotonic()
    found = start("torch", [0, 1], 2, 0, command=(sys.executable, "-c", script))
    assert [s.code for s in found] == [-15, -15]
    assert all("did not return within 7 s of the roll call" in s.err for s in found)
    assert time.monotonic() - began < 25


def test_after_a_failure_the_script_may_try_again() -> None:
    script = (
        "import os, time, allaboard\n"
        "try: allaboard.roll_call(timeout=2)\n"
        "except allaboard.RollCallError as error: print(len(error.findings))\n"
        "os.environ['WORLD_SIZE'] = '2'\n"
        "print(allaboard.roll_call(timeout=30).size)\n"
    )
    found = start("torch", [0, 1], 3, 0, command=(sys.executable, "-c", script))
    assert [s.words for s in found] == [["1", "2"]] * 2, found[0].err


def test_across_hosts_dropped_data_ports_raise_on_every_rank() -> None:
    need()
    with Bed(3) as bed:
        bed.block("h2", Block(way="both", but=(MEETING_PORT,)))
        running = []
        for index, host in enumerate(bed.hosts):
            variables = {k: v for k, v in os.environ.items() if not k.startswith(CLUSTER)}
            variables |= on_host("torch", index, 3) | {"OMP_NUM_THREADS": "1"}
            words = [sys.executable, str(JOBS / "dropin_torch.py"), '{"timeout": 40}']
            running.append(bed.start(host, words, variables))
        assert [p.wait(90) for p in running] == [7, 7, 7], "\n".join(p.text() for p in running)
        assert all("RollCallError NET006" in p.text() for p in running), running[0].text()


@pytest.mark.long
@pytest.mark.parametrize("all_there", [True, False])
def test_the_chief_of_parameter_servers(all_there: bool) -> None:
    held = reserve_ports(3)
    ports = [s.getsockname()[1] for s in held]
    for each in held:
        each.close()
    jobs = ("chief", "worker", "ps")
    cluster = {job: [f"127.0.0.1:{p}"] for job, p in zip(jobs, ports, strict=True)}
    server = Path(allaboard.__file__).parent / "serving" / "tensorflow_server.py"
    running = {}
    for job in jobs if all_there else ("chief", "worker"):
        told = json.dumps({"cluster": cluster, "task": {"type": job, "index": 0}})
        words = [str(JOBS / "dropin_ps.py"), "60" if all_there else "15"]
        running[job] = subprocess.Popen(
            [sys.executable, *(words if job == "chief" else [str(server)])],
            env={**os.environ, "TF_CONFIG": told},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    try:
        said = Said(running.pop("chief"))
    finally:
        for process in running.values():
            process.kill()
            process.communicate()
    if all_there:
        assert said.words[:2] == ["total", "42"], said.err[-3000:]
    else:
        assert said.rules == {"PS003"}


TWICE = {
    "tensorflow": "import sys; sys.modules.update(jax=None, sklearn=None)  # or it loads them too\n"
    "import allaboard.tensorflow as a\nfor _ in range(2): a.MultiWorkerMirroredStrategy()",
    "jax": "import allaboard.jax as a\nfor _ in range(2): a.initialize()",
}


@pytest.mark.parametrize("framework", TWICE)
def test_a_second_call_in_one_process_is_the_frameworks_to_judge(framework: str) -> None:
    found = start(framework, [0, 1], 2, 0, command=(sys.executable, "-c", TWICE[framework]))
    for one in found:
        assert "RollCallError" not in one.err
        once = "RuntimeError: distributed.initialize should only be called once" in one.err
        assert (one.code, once) == ((1, True) if framework == "jax" else (0, False)), one.err[
            -3000:
        ]
