import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(x))


dist.init_process_group("nccl")
device = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(device)
model = DDP(ToyModel().to(device), device_ids=[device])
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for _ in range(100):
    optimizer.zero_grad()
    loss = model(torch.randn(20, 10, device=device)).sum()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
