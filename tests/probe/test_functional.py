"""Functional collectives of the real PyTorch in a group of one: counted as the others are, and once."""

from __future__ import annotations

from allaboard.blackbox.collective_calls import CallReader
from installed_frameworks import needs_torch
from probed import Program

pytestmark = needs_torch
START = """
import warnings
import torch, torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh
dist.init_process_group("gloo", "tcp://127.0.0.1:0", rank=0, world_size=1)
mesh, world, ones = init_device_mesh("cpu", (1,)), dist.group.WORLD, torch.ones(2, 2)
"""
CALLS = """
dist.all_reduce(ones)
functional.all_reduce(ones, "sum", mesh)
functional.all_reduce(ones, "SUM", (mesh, 0)).wait()
functional.all_reduce(ones, "sum", world.group_name) + 1
functional.all_gather_single(ones, 0, world) + 1
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    functional.all_gather_tensor(ones, 0, mesh) + 1
assert [w.filename for w in told] == [__file__], told  # as without us
functional.all_to_all_single(ones, None, None, mesh) + 1
functional.broadcast(ones, 0, mesh) + 1
try:
    functional.all_reduce(ones, "sum", 7)
except ValueError:
    pass
"""


def test_they_are_counted_as_the_others_and_once(program: Program) -> None:
    ended = program.run(START + CALLS)
    assert ended.code == 0, ended.err
    box = program.box(ended.pid)
    (group,) = box.read_snapshot().groups
    trace = CallReader(box.map).trace_group(*group.key)
    assert trace is not None
    signed = [call.op for _, call in trace.calls if call is not None]
    assert signed == [
        *["all_reduce"] * 4, *["all_gather_into_tensor"] * 2, "all_to_all_single", "broadcast",
    ]  # fmt: skip
    alike = [digest for digest, _ in trace.calls]
    assert len(set(alike)) == len(alike) == group.number


COMPILED = """
@torch.compile(backend="aot_eager", fullgraph=True)
def twice(rows):
    return functional.all_reduce(rows, "sum", world.group_name) * 2
assert twice(ones).tolist() == [[2, 2], [2, 2]]
dist.all_reduce(ones)
"""


def test_what_a_compiler_looks_at_is_no_call(program: Program) -> None:
    ended = program.run(START + COMPILED)
    assert ended.code == 0, ended.err
    (group,) = program.read(ended.pid).groups
    assert group.number == 1
