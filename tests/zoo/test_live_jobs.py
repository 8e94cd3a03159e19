"""`allaboard diagnose PID` of real jobs of all frameworks that somebody started in his own way.

One pid is given, of a rank, a shell or a parent; the ranks and clusters are in arguments, in environments, or
set by the program.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 90.0
SPAWNED = """import os, sys, time
import torch, torch.distributed as dist, torch.multiprocessing as mp
def nap():
    time.sleep(600)
def work(rank, world, port, stuck):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    os.write(1, b"up\\n")  # in one piece: the ranks share it
    for step in range(10**9):
        if rank == stuck and step == 3:
            nap()
        dist.all_reduce(torch.ones(100_000))
        sum(range(200_000))
if __name__ == "__main__":
    mp.spawn(work, args=(3, int(sys.argv[1]), int(sys.argv[2])), nprocs=3)
"""
LOOPED = """import argparse, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
parser = argparse.ArgumentParser()
for name in ("--rank", "--lora-rank", "--port"):
    parser.add_argument(name, type=int)
options = parser.parse_args()
def wait_for_license():
    time.sleep(600)
def main(step=0):
    url = f"tcp://127.0.0.1:{options.port}"
    dist.init_process_group("gloo", init_method=url, rank=options.rank, world_size=2)
    model = DistributedDataParallel(torch.nn.Linear(2, 2))
    while True:
        if options.rank == 1 and step == 2:
            wait_for_license()
        model(torch.ones(1, 2)).sum().backward()
        step += 1
main()
"""
JAX = """import sys, multiprocessing
def work(index, port):
    import jax
    jax.distributed.initialize(f"127.0.0.1:{port}", 3, index)
if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    for index in (0, 2):
        multiprocessing.Process(target=work, args=(index, int(sys.argv[1]))).start()
"""
MIRRORED = """import json, os, sys, time
ports, index = sys.argv[1].split(","), int(sys.argv[2])
os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": [f"localhost:{p}" for p in ports]}, "task": {"type": "worker", "index": index}})
sys.modules.update(jax=None, sklearn=None)
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
print("up", flush=True)
time.sleep(600)
"""
SERVERS = """import sys
sys.modules.update(jax=None, sklearn=None)
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("ps", "worker"):
    tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id
    ).join()
strategy = tf.distribute.ParameterServerStrategy(resolver)
print("up", flush=True)
import time
time.sleep(600)
"""
KEPT = """import json, os, sys, threading, time
ports, index = sys.argv[1].split(","), int(sys.argv[2])
os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"chief": [f"localhost:{ports[0]}"], "worker": [f"localhost:{ports[1]}"]},
    "task": {"type": ("chief", "worker")[index], "index": 0}})
sys.modules.update(jax=None, sklearn=None)
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
@tf.function
def step():
    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(lambda: tf.ones([8])), axis=None)
def keep_metrics():
    while True:
        time.sleep(1)
threading.Thread(target=keep_metrics).start()
for number in range(10**9):
    if index and number == 20:
        print("up", flush=True)
        raise ValueError("label 11 is out of range")
    step()
"""
SERVED_BY_CHILD = """import multiprocessing, os, sys, time
sys.modules.update(jax=None, sklearn=None)
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
def serve():
    tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id
    ).join()
def watch(child):
    print(f"child {child.pid} up", flush=True)
    while True:
        time.sleep(2)
if resolver.task_type == "worker":
    child = multiprocessing.Process(target=serve)
    child.start()
    watch(child)
if resolver.task_type == "ps":
    serve()
strategy = tf.distribute.ParameterServerStrategy(resolver)
print("up", flush=True)
time.sleep(600)
"""
SESSIONS = """import argparse, sys
sys.modules.update(jax=None, sklearn=None)
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
parser = argparse.ArgumentParser()
for name in ("--ps_hosts", "--worker_hosts", "--job_name"):
    parser.add_argument(name)
parser.add_argument("--task_index", type=int)
f = parser.parse_args()
cluster = tf.train.ClusterSpec({"ps": f.ps_hosts.split(","), "worker": f.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=f.job_name, task_index=f.task_index)
if f.job_name == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    step = tf.train.get_or_create_global_step()
    add = tf.assign_add(step, 1)
with tf.train.MonitoredTrainingSession(master=server.target, is_chief=f.task_index == 0) as session:
    print("up", flush=True)
    while True:
        session.run(add)
"""
Begin = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    started: list[subprocess.Popen[bytes]] = []

    def start(script: str, *words: object, shell: str = "", **more: str) -> subprocess.Popen[bytes]:
        """Start the script with these arguments, or the ``shell`` line, in which $PY is "python SCRIPT"."""
        file = tmp_path / "train.py"
        file.write_text(script)
        variables = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", **more}
        variables["PY"] = f"{sys.executable} {file}"
        command = ["bash", "-c", shell] if shell else [sys.executable, str(file), *map(str, words)]
        with (tmp_path / "output.log").open("ab") as output:
            process = subprocess.Popen(
                command, env=variables, stdout=output, stderr=output, start_new_session=True
            )
        started.append(process)
        return process

    yield start
    for process in started:
        for entry in Path("/proc").iterdir():
            with suppress(OSError, ValueError):
                if os.getsid(int(entry.name)) == process.pid:
                    os.kill(int(entry.name), signal.SIGKILL)
        process.wait()


def ports(count: int) -> list[int]:
    """Return free ports below those that connections get: who retries to connect would take one of these."""
    numbers: list[int] = []
    while len(numbers) < count:
        number = random.randint(12_000, 31_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", number)):
            numbers.append(number)
    return numbers


def diagnosed(pid: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "allaboard", "diagnose", str(pid), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in done.stderr
    answer: dict[str, Any] = (
        json.loads(done.stdout) if done.stdout else {"findings": [], "read": []}
    )
    return answer


def finding_of(pid: int, rule: str, names: list[str]) -> dict[str, Any]:
    """The only finding, once the job has come to stand."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = diagnosed(pid)
        found = [
            f
            for f in answer["findings"]
            if f["rule"] == rule and [named(w) for w in f["who"]] == names
        ]
        if found and len(answer["findings"]) == 1:
            return {**found[0], "answer": answer}
        assert time.monotonic() < deadline, answer


def named(who: dict[str, Any]) -> str:
    return f"{who.get('job', 'worker')} {who.get('index', 0)}"


def children(pid: int, word: str) -> list[int]:
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(c) for c in below if word in Path(f"/proc/{c}/cmdline").read_text()]


def wait_for_output(folder: Path, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (folder / "output.log").read_text(errors="replace").count("up\n") < count:
        assert time.monotonic() < deadline, (folder / "output.log").read_text()
        time.sleep(0.1)


@pytest.mark.zoo
def test_spawned_ranks_by_the_pid_of_one_that_waits(begin: Begin, tmp_path: Path) -> None:
    parent = begin(SPAWNED, *ports(1), 1)
    wait_for_output(tmp_path, 3)
    one_rank = children(parent.pid, "spawn_main")[0]
    finding = finding_of(one_rank, "HANG005", ["worker 1"])
    assert "in nap" in finding["summary"] and len(finding["answer"]["read"]) == 3
    again = finding_of(parent.pid, "HANG005", ["worker 1"])
    assert len(again["answer"]["read"]) == 3


@pytest.mark.zoo
def test_spawned_ranks_that_train_are_left_alone(begin: Begin, tmp_path: Path) -> None:
    parent = begin(SPAWNED, *ports(1), -1)
    wait_for_output(tmp_path, 3)
    answer = diagnosed(parent.pid)
    assert not answer["findings"] and len(answer["read"]) == 3, answer


@pytest.mark.zoo
def test_a_loops_ranks_are_those_of_their_flags(begin: Begin) -> None:
    line = f"for r in 0 1; do timeout 900 $PY --rank $r --lora-rank 8 --port {ports(1)[0]} & done; wait"
    shell = begin(LOOPED, shell=line)
    finding = finding_of(shell.pid, "HANG005", ["worker 1"])
    assert "in wait_for_license" in finding["summary"]
    assert any("RANK=0" in line for line in finding["answer"]["told"])


@pytest.mark.zoo
def test_a_process_of_jax_that_nobody_started(begin: Begin) -> None:
    parent = begin(JAX, *ports(1))
    finding = finding_of(parent.pid, "JOIN001", ["worker 1"])
    assert len(finding["answer"]["read"]) == 2


@pytest.mark.zoo
def test_a_worker_of_a_cluster_that_the_script_states(begin: Begin, tmp_path: Path) -> None:
    cluster = ",".join(map(str, ports(3)))
    shell = begin(MIRRORED, shell=f"for i in 0 2; do $PY {cluster} $i & done; wait")
    finding = finding_of(shell.pid, "JOIN001", ["worker 1"])
    assert "nothing listens at localhost:" in finding["evidence"][0]["observed"]
    assert "TF_CONFIG=" not in finding["fix"], "the script sets it itself"
    begin(MIRRORED, cluster, 1)
    wait_for_output(tmp_path, 3)
    assert not diagnosed(shell.pid)["findings"]


@pytest.mark.zoo
def test_a_server_of_a_strategy_and_the_chief_that_waits(begin: Begin, tmp_path: Path) -> None:
    numbers = ports(4)
    cluster = {
        "chief": [f"127.0.0.1:{numbers[0]}"],
        "worker": [f"127.0.0.1:{numbers[1]}"],
        "ps": [f"127.0.0.1:{n}" for n in numbers[2:]],
    }

    def start(job: str, index: int) -> subprocess.Popen[bytes]:
        config = {"cluster": cluster, "task": {"type": job, "index": index}}
        return begin(SERVERS, TF_CONFIG=json.dumps(config))

    start("ps", 0)
    worker = start("worker", 0)
    finding = finding_of(worker.pid, "JOIN001", ["chief 0", "ps 1"])
    chief = start("chief", 0)
    finding = finding_of(chief.pid, "JOIN001", ["ps 1"])
    assert '"task": {"type": "ps", "index": 1}' in finding["fix"]
    start("ps", 1)
    wait_for_output(tmp_path, 1)
    assert not diagnosed(chief.pid)["findings"]


@pytest.mark.zoo
def test_sessions_that_wait_for_a_server_of_their_flags(begin: Begin, tmp_path: Path) -> None:
    numbers = ports(3)
    flags = (
        f"--ps_hosts=localhost:{numbers[0]},localhost:{numbers[1]} "
        f"--worker_hosts=localhost:{numbers[2]}"
    )
    shell = begin(
        SESSIONS,
        shell=f"$PY {flags} --job_name=ps --task_index=0 & "
        f"$PY {flags} --job_name=worker --task_index=0 & wait",
    )
    finding = finding_of(shell.pid, "JOIN001", ["ps 1"])
    assert finding["fix"].endswith("--job_name=ps --task_index=1")
    begin(SESSIONS, *flags.split(), "--job_name=ps", "--task_index=1")
    wait_for_output(tmp_path, 1)
    assert not diagnosed(shell.pid)["findings"], "it trains"


def test_a_worker_that_raised_and_is_kept_by_a_thread_is_named_by_its_exception(
    begin: Begin, tmp_path: Path
) -> None:
    addresses = ",".join(map(str, ports(2)))
    outputs = [tmp_path / f"{task}.log" for task in ("chief", "worker")]
    shells = [f"exec $PY {addresses} {i} 2> {output}" for i, output in enumerate(outputs)]
    chief, _ = (begin(KEPT, shell=shell) for shell in shells)
    wait_for_output(tmp_path, 1)
    found = finding_of(chief.pid, "EXIT002", ["worker 0"])
    assert "ValueError: label 11 is out of range" in found["evidence"][0]["observed"]
    assert any("keep_metrics" in e["observed"] for e in found["evidence"])


def test_a_worker_whose_server_was_a_child_that_was_killed(begin: Begin, tmp_path: Path) -> None:
    addresses = ports(3)
    tasks = ("chief", "worker", "ps")
    cluster = {task: [f"127.0.0.1:{port}"] for task, port in zip(tasks, addresses, strict=True)}
    configs = {t: json.dumps({"cluster": cluster, "task": {"type": t, "index": 0}}) for t in tasks}
    started = {t: begin(SERVED_BY_CHILD, TF_CONFIG=config) for t, config in configs.items()}
    wait_for_output(tmp_path, 2)
    assert "HANG033" not in [f["rule"] for f in diagnosed(started["chief"].pid)["findings"]]
    (child,) = children(started["worker"].pid, "train.py")
    os.kill(child, signal.SIGKILL)
    found = finding_of(started["chief"].pid, "HANG033", ["worker 0"])
    assert f"127.0.0.1:{addresses[1]}" in found["summary"] and "in watch" in found["summary"]
