import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __init__(self, total):
        self.total = total

    def __iter__(self):
        share = self.total // dist.get_world_size()
        if dist.get_rank() == 0:
            share = share - 10
        for _ in range(share):
            yield torch.randn(8), torch.randn(1)


dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in DataLoader(Stream(400), batch_size=4):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
