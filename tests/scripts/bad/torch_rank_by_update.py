import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

os.environ.update({
    "MASTER_ADDR": "node-a",
    "MASTER_PORT": "29511",
    "RANK": "0",
    "WORLD_SIZE": "2",
})
dist.init_process_group(backend="gloo")
model = DDP(torch.nn.Linear(8, 8))
for _ in range(10):
    model(torch.randn(4, 8)).sum().backward()
