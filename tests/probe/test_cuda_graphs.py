"""Replays of a CUDA graph count as the steps that were captured in it.

The graph's class is a stand-in with the methods of PyTorch's own, which cannot be made without a GPU;
`scripts/gpu-check` tries that one.
"""

from __future__ import annotations

from installed_frameworks import needs_torch
from probed import Program

pytestmark = needs_torch

PROGRAM = """
import sys, types
import torch
from torch.optim import SGD

hook = [m for n, m in sys.modules.items() if n.endswith("_torch.cuda_graphs")][0].hook

class CUDAGraph:
    def capture_begin(self, pool=None):
        self.calls = []
    def capture_end(self):
        pass
    def replay(self):
        return "replayed"

hook(types.SimpleNamespace(CUDAGraph=CUDAGraph))
model = torch.nn.Linear(4, 2)
optimizer = SGD(model.parameters())

def step():
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()

step()
whole, forward_only = CUDAGraph(), CUDAGraph()
whole.capture_begin(pool=None)
step()
whole.capture_end()
forward_only.capture_begin()
model(torch.ones(3, 4))
forward_only.capture_end()
for _ in range(5):
    assert whole.replay() == "replayed"
    forward_only.replay()
"""


def test_each_replay_makes_the_steps_that_were_captured(program: Program) -> None:
    ended = program.run(PROGRAM)
    assert ended.code == 0, ended.err
    assert program.read(ended.pid).step == 2 + 5
