"""Whom a port's holder listens for."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

from allaboard.hosts.agent_alias import watched
from allaboard.hosts.interface_address import holder_of

LISTENS = (
    "import socket,sys; s = socket.create_server(('127.0.0.1', 0)); "
    "print(s.getsockname()[1], flush=True); sys.stdin.read()"
)


def test_an_agent_names_the_program_that_called_it() -> None:
    told = json.dumps({"pid": 41, "place": "127.0.0.1:1"})
    assert watched(["python", "-m", "allaboard.dropin.attach", told]) == 41
    assert watched(["python", "-m", "allaboard.dropin.attach", "{"]) == 0
    assert watched(["python", "-m", "allaboard.dropin.attach"]) == 0
    assert watched(["python", "train.py", told]) == 0


def test_its_own_words_are_not_told() -> None:
    told = json.dumps({"pid": os.getpid(), "boxes": "/dev/shm/x"})
    words = [sys.executable, "-c", LISTENS, "-m", "allaboard.dropin.attach", told]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None
        pid, command = holder_of(int(one.stdout.readline()))
        one.communicate("")
    assert pid == os.getpid() and "boxes" not in command


def test_any_other_is_named_itself() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert holder_of(server.getsockname()[1])[0] == os.getpid()
