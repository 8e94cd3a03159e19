"""What PyTorch 1.13 calls otherwise is found: groups, steps, backward."""

from __future__ import annotations

from probed import Program

DISTRIBUTED = """
class Group:
    pass
class GroupMember:
    WORLD = Group()
class Tensor:
    shape, dtype = (3, 4), "torch.float32"
_pg_group_ranks = {GroupMember.WORLD: {0: 0, 1: 1}}
_pg_map = {GroupMember.WORLD: ("gloo", None)}
_pg_names = {GroupMember.WORLD: "world"}
__all__ = ["init_process_group", "all_reduce"]
def init_process_group(*args, **rest):
    pass
def all_reduce(tensor):
    return tensor
def get_rank():
    return 1
"""
OPTIMIZER = """
class Optimizer:
    def __init__(self):
        self.param_groups = []
    def _optimizer_step_code(self):
        pass
    def step(self):
        self._optimizer_step_code()
"""
FILES = {
    "torch/__init__.py": "__version__ = '1.13'\ndef get_num_threads(): return 1\n",
    "torch/distributed/__init__.py": "",
    "torch/distributed/distributed_c10d.py": DISTRIBUTED,
    "torch/optim/__init__.py": "",
    "torch/optim/optimizer.py": OPTIMIZER,
    "torch/autograd/__init__.py": "from . import graph\ndef backward(tensors, scale=1):\n"
    "    return tensors, scale\n",
    "torch/autograd/graph.py": "",
}
CODE = """
import _allaboard_probe.member as m, torch.autograd, torch.optim.optimizer as optim
import torch.distributed.distributed_c10d as dist
dist.all_reduce(dist.Tensor())
one = optim.Optimizer()
one.step()
one.step()
print(torch.autograd.backward(7), torch.autograd.backward([8], scale=2), m.here.notes)
"""


def test_groups_steps_and_backward(program: Program) -> None:
    for name, text in FILES.items():
        path = program.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    ended = program.run(CODE)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("(7, 1) ([8], 2) ") and "this version has no" not in ended.out
    seen = program.read(ended.pid)
    assert seen.step == 2
    (group,) = seen.groups
    assert (group.key[0], group.number, group.ranks) == ("world", 1, (0, 1))
