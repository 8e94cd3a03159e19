"""Whom a port's holder listens for."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

from allaboard.hosts.agent_alias import attached_pid_of
from allaboard.hosts.interface_address import port_holder

LISTENS = (
    "import socket,sys; s = socket.create_server(('127.0.0.1', 0)); "
    "print(s.getsockname()[1], flush=True); sys.stdin.read()"
)


def test_an_agent_names_the_program_that_called_it() -> None:
    told = json.dumps({"pid": 41, "place": "127.0.0.1:1"})
    assert attached_pid_of(["python", "-m", "allaboard.dropin.attach", told]) == 41
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


def test_any_other_is_named_itself() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert port_holder(server.getsockname()[1])[0] == os.getpid()
