"""A drop-in in a process that is in its job already, and two processes of one rank."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from allaboard.dropin import joining
from allaboard.dropin.framework_state import is_initialized
from free_ports import free_port

STATES = {
    "torch": ("torch.distributed", lambda up: SimpleNamespace(is_initialized=lambda: up)),
    "jax": (
        "jax._src.distributed",
        lambda up: SimpleNamespace(
            global_state=SimpleNamespace(client=object() if up else None, service=None)
        ),
    ),
    "tensorflow": (
        "tensorflow.python.eager.context",
        lambda up: SimpleNamespace(
            context=lambda: SimpleNamespace(_collective_ops_server_def=object() if up else None)
        ),
    ),
}


def declared(framework: str, call: str = "init") -> dict[str, object]:
    place = "tcp://127.0.0.1:1"
    return {"framework": framework, "call": call, "rank": 0, "world_size": 2, "place": place}


@pytest.mark.parametrize("framework", STATES)
def test_it_is_known_by_the_frameworks_state(
    framework: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, module = STATES[framework]
    monkeypatch.setitem(sys.modules, name, module(False))
    assert not is_initialized(declared(framework))
    monkeypatch.setitem(sys.modules, name, module(True))
    assert is_initialized(declared(framework))
    assert not is_initialized(declared(framework, call="roll_call"))
    monkeypatch.setitem(sys.modules, name, SimpleNamespace())
    assert not is_initialized(declared(framework))


def test_no_second_roll_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    name, module = STATES["jax"]
    monkeypatch.setitem(sys.modules, name, module(True))
    monkeypatch.setattr(joining.attach, "attach", lambda *_, **__: pytest.fail("a roll call"))
    with joining.joining(declared("jax"), 1.0):
        pass


CALL = """
import allaboard
try:
    allaboard.roll_call(30)
except allaboard.RollCallError as error:
    print(error)
"""


def test_two_of_the_first_rank_on_one_host_hear_of_each_other() -> None:
    told = {
        "RANK": "0",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }
    usual = {k: v for k, v in os.environ.items() if not k.startswith("ALLABOARD")}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", CALL], env=usual | told, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for one in both:
        said, _ = one.communicate(timeout=60)
        assert "2 processes claim to be rank 0" in said
        assert "JOIN005" in said and "attached" not in said and "kill" not in said
