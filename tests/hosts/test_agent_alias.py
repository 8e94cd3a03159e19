"""Whom a port's holder listens for."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

from allaboard.hosts.agent_alias import attached_pid_of
from allaboard.hosts.interface_address import port_holder
from allaboard.hosts.rank_processes import find_ranks, rank_identity

LISTENS = (
    "import socket,sys; s = socket.create_server(('127.0.0.1', 0)); "
    "print(s.getsockname()[1], flush=True); sys.stdin.read()"
)


def test_an_agent_names_the_program_that_called_it() -> None:
    told = json.dumps({"pid": 41, "place": "127.0.0.1:1"})
    assert attached_pid_of(["python", "-m", "allaboard.dropin.attach", told]) == 41
    assert attached_pid_of(["python", "-m", "allaboard.dropin.attach.daemonize", told]) == 41
    assert attached_pid_of(["python", "-m", "allaboard.dropin.attach", "{"]) == 0
    assert attached_pid_of(["python", "-m", "allaboard.dropin.attach"]) == 0
    assert attached_pid_of(["python", "train.py", told]) == 0


def test_its_own_words_are_not_told() -> None:
    told = json.dumps({"pid": os.getpid(), "boxes": "/dev/shm/x"})
    words = [sys.executable, "-c", LISTENS, "-m", "allaboard.dropin.attach", told]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None
        pid, command = port_holder(int(one.stdout.readline()))
        one.communicate("")
    assert pid == os.getpid() and "boxes" not in command


def test_it_is_no_rank_although_it_has_the_environment_of_one() -> None:
    word = f"waits-{os.getpid()}"
    program = [sys.executable, "-c", "import sys; sys.stdin.read()", word]
    agent = [*program, "-m", "allaboard.dropin.attach.daemonize", json.dumps({"pid": 41})]
    environment = {**os.environ, "RANK": "1", "WORLD_SIZE": "2"}
    with (
        subprocess.Popen(program, stdin=subprocess.PIPE, env=environment) as rank,
        subprocess.Popen(agent, stdin=subprocess.PIPE, env=environment) as beside,
    ):
        try:
            assert rank_identity(rank.pid) is not None and rank_identity(beside.pid) is None
            assert find_ranks([word]) == [rank.pid]
        finally:
            rank.communicate(b"")
            beside.communicate(b"")


def test_any_other_is_named_itself() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert port_holder(server.getsockname()[1])[0] == os.getpid()
