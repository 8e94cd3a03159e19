import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def leads():
    return dist.get_rank() == 0


class Trainer:
    def __init__(self):
        self.me = int(os.environ["RANK"])

    def keep(self, state):
        if self.me < 1:
            torch.save(state, "kept.pt")


if "RANK" in os.environ:
    dist.init_process_group("gloo")
    dist.barrier()
r, n = dist.get_rank(), dist.get_world_size()
lead = r == 0 and n > 1
model = DDP(torch.nn.Linear(2, 1))
for _ in range(3):
    model(torch.ones(4, 2)).sum().backward()
    if lead:
        torch.save(model.module.state_dict(), "model.pt")
    if not r:
        torch.save(model.module.state_dict(), "last.pt")
    if leads():
        torch.save(model.module.state_dict(), "best.pt")
    dist.barrier()
