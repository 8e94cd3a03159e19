"""What an event costs: a generous bound that no machine should miss; the figure is for the eye."""

from __future__ import annotations

import json

import pytest

from probed import Program, fake_torch

BOUND = 12.0
"""Microseconds."""
CODE = """
import json, time, torch.distributed as dist, _allaboard_probe.member as m
plain = dist.all_reduce.__wrapped__
def best(call, *arguments):
    runs = []
    for _ in range(7):
        begin = time.perf_counter()
        for _ in range(20000):
            call(*arguments)
        runs.append((time.perf_counter() - begin) / 20000 * 1e6)
    return min(runs)
tensor = dist.distributed_c10d.Tensor()
empty = best(plain, tensor)
assert m.here.box.map[65536] == 0
cost = best(dist.all_reduce, tensor) - empty
assert m.here.box.map[65536:65544] != bytes(8), "the calls were not recorded"
print(json.dumps({"collective": cost, "step": best(m.step)}))
"""


def test_an_event_costs_little(any_program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    fake_torch(any_program.folder)
    ended = any_program.run(CODE)
    cost = json.loads(ended.out)
    with capsys.disabled():
        print(
            f"\n{any_program.interpreter}: " + ", ".join(f"{k} {v:.2f} µs" for k, v in cost.items())
        )
    assert max(cost.values()) < BOUND
