"""What an init of a process tells of itself beside the others of the same process."""

from __future__ import annotations

import pytest

from probed import Program, fake_torch

SCRIPT = """
import os, sys, torch.distributed as dist
for port in map(int, sys.stdin.readline().split()):
    os.environ["GLOO_SOCKET_IFNAME"] = f"eth{port}"
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=0, world_size=2)
"""


@pytest.mark.parametrize(
    ("ports", "again"), [("7", False), ("7 7", True), ("7 8", False), ("7 8 7", True)]
)
def test_an_init_at_the_place_of_an_earlier_one(ports: str, again: bool, program: Program) -> None:
    fake_torch(program.folder)
    process = program.start(SCRIPT)
    _, said = process.communicate(ports + "\n", timeout=60)
    told = program.read(process.pid).declared
    assert told is not None, said
    assert (told.again, told.interface) == (again, f"eth{ports[-1]}")
