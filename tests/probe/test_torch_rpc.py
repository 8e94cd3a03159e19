"""`init_rpc` as an init of PyTorch: what it was told, and in which processes it counts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from allaboard.probe.adapters import torch
from allaboard.probe.adapters._torch import rpc
from probed import RENDEZVOUS, Program, fake_torch

RPC = """
def init_rpc(name, backend=None, rank=-1, world_size=None, rpc_backend_options=None):
    print(m.here.round, m.here.box.phase_code)
import _allaboard_probe.member as m
"""
BEGIN = """
import torch.distributed as dist, torch.distributed.rpc as rpc, _allaboard_probe.member as m
"""


def asked(*args: object, **kwargs: object) -> dict[str, object] | None:
    return rpc.rpc_declaration(args, kwargs, torch.read_declaration)


def test_it_tells_rank_size_and_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in RENDEZVOUS.items():
        monkeypatch.setenv(name, value)
    found = asked("w0", None, 0, 3)
    assert found is not None
    assert (found["call"], found["rank"], found["world_size"]) == ("init_rpc", 0, 3)
    assert found["place"] == "tcp://127.0.0.1:29999"
    assert found["origin"] == "arguments of init_rpc, MASTER_ADDR, MASTER_PORT"
    options = SimpleNamespace(init_method="tcp://node0:29500")
    found = asked("w1", rank=1, world_size=2, rpc_backend_options=options)
    assert found is not None and found["place"] == "tcp://node0:29500"
    assert found["origin"] == "arguments of init_rpc"


def test_a_group_without_a_size_has_no_roll_call() -> None:
    assert asked("w0", rank=0) is None
    assert asked("w0", world_size=2) is None


JOIN, GROUP = "rpc.init_rpc('w', rank=1, world_size=2)", "dist.init_process_group()"


@pytest.mark.parametrize(
    ("calls", "inside", "last", "rounds"),
    [
        ((JOIN,), "1 5", "init_rpc", 1),
        ((JOIN, JOIN), "1 5\n2 5", "init_rpc", 2),
        # After a group it is not counted: not all who take part in RPC need be in a group.
        ((GROUP, JOIN), "1 6", "init_process_group", 1),
        ((JOIN, GROUP), "1 5", "init_process_group", 2),
    ],
)
def test_in_which_processes_it_counts(
    program: Program, calls: tuple[str, ...], inside: str, last: str, rounds: int
) -> None:
    fake_torch(program.folder)
    package = program.folder / "torch" / "distributed" / "rpc"
    package.mkdir()
    (package / "__init__.py").write_text(RPC)
    program.environment |= RENDEZVOUS
    ended = program.run(BEGIN + "\n".join(calls))
    assert ended.code == 0, ended.err
    assert ended.out.strip() == inside  # round and phase: JOINING is 5, JOINED 6
    box = program.read(ended.pid)
    assert box.declared is not None
    assert (box.declared.call, box.round) == (last, rounds)


def test_among_several_hosts_it_does_not_count(program: Program) -> None:
    fake_torch(program.folder)
    package = program.folder / "torch" / "distributed" / "rpc"
    package.mkdir()
    (package / "__init__.py").write_text(RPC)
    program.environment |= RENDEZVOUS | {"ALLABOARD_GATE": "cluster"}
    ended = program.run(BEGIN + JOIN)
    assert (ended.code, ended.out.strip()) == (0, "0 3"), ended.err
    assert program.read(ended.pid).declared is None
