"""An address without a port: nobody is called, and the framework says what is wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import pytest

from allaboard.dropin.joining import joining


@pytest.mark.parametrize(
    "place", ["tcp://127.0.0.1", "tcp://[::1]:", "tcp://h?rank=0&world_size=2"]
)
def test_nobody_is_called(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    def started(command: Sequence[str], **_: object) -> None:
        raise AssertionError(f"an agent was started: {command}")

    monkeypatch.setattr(subprocess, "Popen", started)
    told = {"framework": "torch", "call": "init_process_group", "rank": 0, "world_size": 2}
    with joining({**told, "place": place}, 1.0):
        pass
