"""PyTorch's debug server and NCCL's service, asked while a job runs."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from allaboard.diagnosis.instruments import nccl_ras_json, torch_debug_server
from allaboard.diagnosis.live.endpoint_answers import (
    ASK_AGAIN_S,
    EndpointError,
    ask_ras,
    is_endpoint,
    write_answers,
)
from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Exhibit
from allaboard.facts.instruments.nccl_state import NcclStates
from allaboard.formats.dumps.debug_pages import RankAnswer, as_dump, read_debug_page
from allaboard.rules.engine.catalogue import load_catalogue
from allaboard.rules.engine.evaluate import run_rules
from free_ports import free_port

JOB = Path(__file__).with_name("debugged_job.py")
STACK = (
    "Current thread 0x00007fad06ffd6c0 (most recent call first):\n  <no Python frame>\n\n"
    "Thread 0x00007fad38e87b8{0} (most recent call first):\n{1}"
    '  File "/job/train.py", line 13 in train\n  File "/job/train.py", line 14 in <module>\n'
)
WAITS = (
    '  File "/py/site-packages/torch/distributed/distributed_c10d.py", line 3252 in all_reduce\n'
    '  File "/py/site-packages/torch/distributed/c10d_logger.py", line 83 in wrapper\n'
)
SLEEPS = '  File "/job/train.py", line 40 in load\n'


def page(*answers: tuple[int, str]) -> str:
    """Return a page as the server's template makes it."""
    parts = []
    for rank, (status, text) in enumerate(answers):
        failed = f"<p>Failed to fetch: status={status}</p>\n            " if status != 200 else ""
        address = f"http://node:{4000 + rank}/handler/dump_traceback?"
        parts.append(f"<h2>Rank {rank}: {address}</h2>\n        {failed}<pre>{text}</pre>\n")
    return f'<section class="content">\n<h1>Stacks</h1>\n{"".join(parts)}\n</section>\n    '


def test_stacks_are_read_of_a_page_that_escapes_nothing() -> None:
    answers = read_debug_page(
        page((200, STACK.format(0, WAITS)), (408, "TimeoutError: "), (200, "x"))
    )
    assert [(a.rank, a.status) for a in answers] == [(0, 200), (1, 408), (2, 200)]
    assert "14 in <module>" in answers[0].text and answers[1].text == "TimeoutError: "


def test_the_rank_that_sleeps_is_named_of_the_stacks_of_all(tmp_path: Path) -> None:
    stacks = [STACK.format(rank, SLEEPS if rank == 1 else WAITS) for rank in range(3)]
    answers = read_debug_page(page(*((200, s) for s in stacks)))
    (tmp_path / "stacks_20260102_030405.txt").write_text(as_dump(answers))
    found = {f.rule: f for f in diagnose_paths([tmp_path], load_catalogue()).findings}
    assert [w.rank for w in found["DUMP001"].who] == [1]


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ("TimeoutError: ", "it may be stopped"),
        ("Timeout: HTTPConnectionPool: Read timed out. (read timeout=60.0)", "it may be stopped"),
        ("ClientConnectorError: Cannot connect to host node:4001", "it has ended"),
    ],
)
def test_a_rank_that_does_not_answer_is_named(why: str, words: str) -> None:
    answers = [
        RankAnswer(rank=0, address="http://node:4000/", status=200, text="x"),
        RankAnswer(rank=1, address="http://node:4001/", status=408, text=why),
    ]
    testimony = torch_debug_server.read_log(Exhibit(name="a", data=as_dump(answers).encode()))
    assert testimony is not None
    (heard,) = testimony.heard
    assert words in heard.says and [w.rank for w in heard.about] == [1] and heard.size == 2


def test_answers_of_all_ranks_say_nothing_of_silence() -> None:
    answers = [RankAnswer(rank=0, address="http://node:4000/", status=200, text="x")]
    assert torch_debug_server.read_log(Exhibit(name="a", data=as_dump(answers).encode())) is None


@pytest.mark.parametrize(
    ("target", "is_one"),
    [
        ("http://127.0.0.1:25999", True),
        ("ras://node7", True),
        ("https://node7:1", False),
        ("file:///etc/passwd", False),
        ("logs/", False),
        ("node7:4711", False),
    ],
)
def test_only_services_are_asked(target: str, is_one: bool) -> None:
    assert is_endpoint(target) is is_one


@pytest.fixture
def talker() -> Iterator[tuple[int, list[bytes]]]:
    """Serve one connection: answer each line by the next of these, then close."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(20)
    answers: list[bytes] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as lines:
                for answer in answers:
                    lines.readline()
                    connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1], answers
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(10)


def test_nccls_service_is_asked_in_its_protocol(
    talker: tuple[int, list[bytes]], tmp_path: Path
) -> None:
    port, answers = talker
    answers += [b"SERVER PROTOCOL 2\n", b"OK\n", b'{\n  "communicators": []\n}\n']
    write_answers(f"ras://127.0.0.1:{port}", tmp_path)
    assert (tmp_path / "ras.txt").read_bytes() == answers[2]


def test_an_older_nccl_answers_as_text(talker: tuple[int, list[bytes]]) -> None:
    port, answers = talker
    answers += [
        b"SERVER PROTOCOL 2\n",
        b"ERROR: Unknown command SET FORMAT json\n",
        b"NCCL version 2.26\n",
    ]
    assert ask_ras("127.0.0.1", port) == b"NCCL version 2.26\n"


def test_another_service_is_told_from_them(talker: tuple[int, list[bytes]], tmp_path: Path) -> None:
    port, answers = talker
    answers += [b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi"]
    with pytest.raises(EndpointError, match="no debug server of PyTorch"):
        write_answers(f"http://127.0.0.1:{port}", tmp_path)
    with pytest.raises(EndpointError, match="does not answer there"):
        write_answers(f"ras://127.0.0.1:{port}", tmp_path)


@pytest.mark.parametrize("target", ["http://127.0.0.1", "http://127.0.0.1:99999", "ras://:1"])
def test_a_target_without_a_place_is_refused_in_a_sentence(target: str, tmp_path: Path) -> None:
    with pytest.raises(EndpointError, match=target):
        write_answers(target, tmp_path)


@pytest.mark.zoo
@pytest.mark.parametrize("stopped", [False, True], ids=["asleep", "stopped"])
def test_a_running_job_is_diagnosed_through_its_debug_server(stopped: bool) -> None:
    pytest.importorskip("torch.distributed.debug._frontend")
    front_port, store_port = free_port(), free_port()
    environment = os.environ | {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store_port), "WORLD_SIZE": "3",
        "GLOO_SOCKET_IFNAME": "lo", "TORCH_FR_BUFFER_SIZE": "200", "PYTHONWARNINGS": "ignore",
    }  # fmt: skip
    ranks = [
        subprocess.Popen(
            [sys.executable, str(JOB), str(front_port)],
            env=environment | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for rank in range(3)
    ]
    try:
        for rank, word in ((0, "serving"), (1, "blocked")):
            output = ranks[rank].stdout
            assert output is not None and word in output.readline()
        if stopped:
            ranks[1].send_signal(signal.SIGSTOP)
        done = subprocess.run(
            [sys.executable, "-m", "allaboard", "diagnose", f"http://localhost:{front_port}"],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
    finally:
        for process in ranks:
            process.kill()
        for process in ranks:
            process.communicate()
    assert done.returncode == 1, done.stderr
    expected = "DUMP011" if stopped else "DUMP001"
    assert expected in done.stdout and "rank 1" in done.stdout, done.stdout
    assert "allaboard-" not in done.stdout, "the user knows the address, not our folder"


def ras_answer(behind: int, ahead: int) -> bytes:
    ranks = [
        {"rank": r, "host": "127.0.0.1", "pid": 1035 + r, "cuda_dev": 0, "nvml_dev": 0,
         "collective_counts": {"AllReduce": n}}
        for r, n in enumerate((ahead, behind))
    ]  # fmt: skip
    communicator = {"hash": "0xf4", "size": 2, "ranks_count": 2, "ranks": ranks}
    return json.dumps({"nccl_version": "2.28.9", "communicators": [communicator]}).encode()


@pytest.mark.parametrize(
    ("second", "found"),
    [
        (ras_answer(1204, 1206), []),
        (ras_answer(1196, 1198), ["error"]),
        (ras_answer(1196, 1200), ["warning"]),
    ],
)
def test_ranks_that_are_not_equally_far_are_asked_for_again(
    talker: tuple[int, list[bytes]], tmp_path: Path, second: bytes, found: list[str]
) -> None:
    port, answers = talker
    hello = [b"SERVER PROTOCOL 2\n", b"OK\n"]
    answers += [*hello, ras_answer(1196, 1198)]
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        answers[:] = [*hello, second]

    write_answers(f"ras://127.0.0.1:{port}", tmp_path, sleep)
    assert pauses == [ASK_AGAIN_S]
    text = Exhibit(name="ras.txt", data=(tmp_path / "ras.txt").read_bytes())
    testimony = nccl_ras_json.read_log(text)
    assert testimony is not None and len(testimony.nccl) == 2
    states = NcclStates(reports=testimony.nccl)
    claims = [c for e, c in run_rules(states, load_catalogue().entries)]
    assert [str(c.severity) for c in claims] == found
