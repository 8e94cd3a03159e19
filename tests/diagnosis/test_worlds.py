"""Several worlds of ranks side by side: told apart, judged each by itself, and which waits for which."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from allaboard.diagnosis.live.live_diagnosis import diagnose_processes
from allaboard.diagnosis.live.world_waits import find_world_waits
from allaboard.diagnosis.live.worlds import World, divide_worlds
from allaboard.facts import Diagnosis, Frame, Member, Phase, Stack, Who
from allaboard.facts.live_look import Awaited, HostLook, Present, Socket
from allaboard.report.diagnosis import as_text
from free_ports import free_port

REDUCES = (
    Frame("/v/site-packages/torch/distributed/distributed_c10d.py", 9, "all_reduce"),
    Frame("/home/u/trainer.py", 35, "main", "dist.all_reduce(t)"),
)
SLEEPS = (Frame("/home/u/trainer.py", 16, "prepare_batch", "time.sleep(10000)"),)
RECEIVES = (Frame("/home/u/rollout.py", 16, "receive_weights", "return conn.recv(13)"),)
GETS = (Frame("/home/u/rollout.py", 20, "fetch", 'store.get("weights")'),)
NEAR, FAR = "127.0.0.1:40000", "127.0.0.1:5000"


def rank(
    number: int,
    frames: tuple[Frame, ...],
    pid: int,
    script: str = "trainer.py",
    port: str = "29500",
    size: str = "2",
    *arguments: str,
    moving: bool = False,
    awaits: tuple[Awaited, ...] = (),
    **more: object,
) -> Present:
    """One rank that stands at these frames for two seconds."""
    stack = Stack(frames=frames, taken_at=10.0, samples=5, span=2.0, moving=moving)
    who = Who(index=number, rank=number, host="h", pid=pid)
    fields = {"cpu": 0.9 if moving else 0.0, **more}
    member = Member(who=who, worker=number, phase=Phase.TRAINING, stack=stack, **fields)  # type: ignore[arg-type]
    sockets = tuple(Socket(a.local, a.remote, "ESTAB") for a in awaits if a.remote)
    variables = {"RANK": str(number), "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1",
                 "MASTER_PORT": port}  # fmt: skip
    return Present(
        member=member,
        variables=variables,
        command=("/v/bin/python", script, *arguments),
        awaits=awaits,
        sockets=sockets,
    )


def rollout(number: int, frames: tuple[Frame, ...], **more: object) -> Present:
    return rank(number, frames, 200 + number, "rollout.py", "29600", **more)  # type: ignore[arg-type]


FROM_TRAINER = Awaited(local=NEAR, remote=FAR, pids=(100,), programs=("trainer.py",))
WAITS = rollout(0, RECEIVES, awaits=(FROM_TRAINER,))
ITS_PEER = rollout(1, REDUCES)


def diagnosed(*present: Present) -> Diagnosis:
    return diagnose_processes((HostLook(host="h", now=12.0, present=present),))


def names(*present: Present) -> list[str]:
    return [w.name for w in divide_worlds(present)]


def test_the_one_that_the_trainer_waits_for_is_named_and_who_waits_beside() -> None:
    answer = diagnosed(rank(0, REDUCES, 100), rank(1, SLEEPS, 101), WAITS, ITS_PEER)
    (finding,) = answer.findings
    assert finding.rule == "HANG005" and [w.pid for w in finding.who] == [101]
    assert finding.summary.startswith(
        "trainer.py: worker 1 is asleep at trainer.py:16 in prepare_batch"
    )
    assert any(e.observed.startswith("rollout.py waits for trainer.py") for e in finding.evidence)
    text = " ".join(as_text(answer).split())
    assert "2 worlds of ranks run side by side: trainer.py: 2 ranks, meets at" in text
    assert (
        "rollout.py waits for trainer.py: its rank 0 at rollout.py:16 in receive_weights waits for "
        f"rank 0 (pid 100), which has the other end of a connection ({NEAR} to {FAR})"
    ) in text
    assert "rank 0 of rollout.py: waiting for the answer" in text


def test_a_rollout_that_idles_while_the_trainer_trains_is_no_finding() -> None:
    busy = (rank(0, SLEEPS, 100, moving=True), rank(1, REDUCES, 101, moving=True))
    answer = diagnosed(*busy, WAITS, ITS_PEER)
    assert answer.findings == ()
    assert "rollout.py waits for trainer.py, which is no fault by itself" in answer.conclusion


def test_the_trainer_that_sleeps_alone_is_named() -> None:
    answer = diagnosed(rank(0, SLEEPS, 100), rank(1, SLEEPS, 101), WAITS, ITS_PEER)
    assert [f.rule for f in answer.findings] == ["HANG028"]
    assert answer.findings[0].summary == (
        "trainer.py: worker 0 is asleep at trainer.py:16 in prepare_batch; rollout.py waits for it"
    )


def test_a_key_of_a_store_names_no_one_to_set_it() -> None:
    waits = rollout(0, GETS, awaits=(FROM_TRAINER,))
    answer = diagnosed(rank(0, SLEEPS, 100), rank(1, SLEEPS, 101), waits, ITS_PEER)
    assert answer.findings == ()
    assert "the store does not tell who should set it" in "".join(answer.told)


def test_another_host_holds_the_other_end() -> None:
    """There a connection is known by its two ends alone."""
    waits = rollout(0, RECEIVES, awaits=(Awaited(local=NEAR, remote=FAR),))
    far = rank(0, SLEEPS, 100, "trainer.py", "29500", "1")
    far = msgspec.structs.replace(far, sockets=(Socket(FAR, NEAR, "ESTAB"),))
    worlds = [World("a", "", 1, (far,)), World("b", "", 2, (waits, ITS_PEER))]
    (wait,) = find_world_waits(worlds)
    assert (wait.waiter_world, wait.holder_world, wait.holder.pid) == ("b", "a", 100)


def test_a_pipe_whose_writers_are_of_two_worlds_names_none() -> None:
    pipe = Awaited(means="a pipe", pids=(100, 300))
    waits = rollout(0, RECEIVES, awaits=(pipe,))
    worlds = [
        World("a", "", 1, (rank(0, SLEEPS, 100),)),
        World("b", "", 1, (waits,)),
        World("c", "", 1, (rank(0, SLEEPS, 300),)),
    ]
    assert find_world_waits(worlds) == ()


def test_a_process_outside_that_holds_the_other_end_is_named() -> None:
    server = Awaited(local=NEAR, remote=FAR, pids=(900,), programs=("reward.py",))
    answer = diagnosed(
        rank(0, REDUCES, 100, moving=True),
        rank(1, REDUCES, 101, moving=True),
        rollout(0, RECEIVES, awaits=(server,)),
        ITS_PEER,
    )
    assert "rollout.py waits at rank 0 for pid 900 (reward.py), which is none" in "".join(
        answer.told
    )


def test_ranks_that_were_told_another_port_are_one_world_with_a_mistake() -> None:
    assert len(names(rank(0, REDUCES, 1), rank(1, REDUCES, 2, port="29501"))) == 1
    strays = (rank(0, REDUCES, 1), rank(1, REDUCES, 2), rank(0, REDUCES, 3, port="29501"))
    assert len(names(*strays)) == 1


def test_worlds_are_called_by_what_differs() -> None:
    same = [
        rank(n, REDUCES, 10 * int(port[-1]) + n, "rl.py", port, "2", *arguments)
        for port, arguments in (("29501", ("--role", "a")), ("29502", ("--role", "b")))
        for n in range(2)
    ]
    assert names(*same) == ["rl.py --role a", "rl.py --role b"]
    bare = [msgspec.structs.replace(p, command=p.command[:2]) for p in same]
    assert names(*bare) == ["rl.py at 127.0.0.1:29501", "rl.py at 127.0.0.1:29502"]
    spawned = ("/v/bin/python", "-c", "from multiprocessing.spawn import spawn_main")
    by_function = [
        msgspec.structs.replace(p, command=spawned)
        for p in (rank(0, SLEEPS, 1), rank(1, SLEEPS, 2), WAITS, ITS_PEER)
    ]
    assert names(*by_function) == ["prepare_batch of trainer.py", "receive_weights of rollout.py"]


RANK = """import os, socket, sys, time
port, role = int(os.environ["TALK_PORT"]), sys.argv[2]
def prepare_batch():
    print("up", flush=True)
    time.sleep(600)
def receive_weights(stream):
    print("up", flush=True)
    stream.recv(13)
if os.environ["RANK"] == "1":
    prepare_batch()
if role == "trainer":
    with socket.create_server(("127.0.0.1", port)) as door:
        print("listens", flush=True)
        stream, _ = door.accept()
    prepare_batch()
receive_weights(socket.create_connection(("127.0.0.1", port)))
"""


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[list[int]]:
    """Two worlds of two ranks; the second one's rank 0 waits for a message of the first one's."""
    script = tmp_path / "rl.py"
    script.write_text(RANK)
    ports = [str(free_port()) for _ in range(3)]
    started: list[subprocess.Popen[str]] = []
    for role, port in zip(("trainer", "rollout"), ports[1:], strict=True):
        for number in range(2):
            variables = {"RANK": str(number), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                         "MASTER_PORT": port, "TALK_PORT": ports[0]}  # fmt: skip
            process = subprocess.Popen(
                [sys.executable, str(script), "--role", role],
                env={"PATH": os.environ["PATH"], **variables},
                stdout=subprocess.PIPE,
                text=True,
            )
            started.append(process)
            assert process.stdout is not None and process.stdout.readline() in ("up\n", "listens\n")
    yield [p.pid for p in started]
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_real_processes_of_two_worlds(worlds: list[int]) -> None:
    command = [sys.executable, "-m", "allaboard", "diagnose", *map(str, worlds), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    answer = json.loads(done.stdout)
    (finding,) = answer["findings"]
    assert finding["rule"] == "HANG028"
    assert finding["summary"] == (
        "rl.py --role trainer: worker 0 is asleep at rl.py:5 in prepare_batch; rl.py --role rollout "
        "waits for it"
    )
    assert [w["pid"] for w in finding["who"]] == worlds[:1]
    assert {c["world"] for c in answer["crowds"]} == {
        "rl.py --role trainer",
        "rl.py --role rollout",
    }
