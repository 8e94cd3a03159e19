import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel as DDP


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(torch.relu(self.net1(x)))


def demo(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)
    model = ToyModel().to(rank)
    ddp_model = DDP(model, device_ids=[rank])
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.001)
    for epoch in range(3):
        for _ in range(10):
            optimizer.zero_grad()
            loss = ddp_model(torch.randn(20, 10, device=rank)).sum()
            loss.backward()
            optimizer.step()
        ddp_model = ddp_model.cpu()
        build_index()
        ddp_model = ddp_model.to(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(demo, args=(2,), nprocs=2, join=True)
